// Points of a page that the search finds: what readers do and ask comes before what explains it, and decisions,
// measurements and changes come last. A title that is the question counts most.
const BEHIND = /^(adr|benchmarks|project\/changelog|reference|metrics|queueing)/;
const BEFORE = /^(how-to|everyday-questions|questions|tutorial|install|cli)/;
const ASKED = (new URLSearchParams(window.location.search).get("q") || "").trim().toLowerCase();
var Scorer = {
  score: (result) => result[4] + (ASKED && result[1].toLowerCase().includes(ASKED) ? 100 : 0) - (BEHIND.test(result[0]) ? 100 : 0) + (BEFORE.test(result[0]) ? 20 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 60,
  partialTitle: 25,
  term: 5,
  partialTerm: 2,
};
