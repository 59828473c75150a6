// Points of a page that the search finds: what readers do and ask comes before what explains it, and decisions,
// measurements and changes come last. A title that is the question counts most.
const BEHIND = /^(adr|benchmarks|project\/changelog|reference|metrics|queueing)/;
const BEFORE = /^(how-to|everyday-questions|questions|tutorial|install|cli)/;
const ASKED = (new URLSearchParams(window.location.search).get("q") || "").trim().toLowerCase();
// Words of a question that say nothing of its subject: with them, pages without them would not be found.
["work", "happen", "happens", "need", "use", "want", "get", "make", "can", "plimsoll"].forEach((each) => stopwords.add(each));
const WORDS = ASKED.split(/[^\p{L}\p{N}_-]+/u).filter((each) => each && !stopwords.has(each));
// A title that is the question, then one that has each of its words.
const asked = (title) => (!ASKED ? 0 : title.includes(ASKED) ? 100 : WORDS.length > 1 && WORDS.every((each) => title.includes(each)) ? 40 : 0);
var Scorer = {
  score: ([page, title, , , score]) => score + (BEHIND.test(page) ? -100 : asked(title.toLowerCase())) + (BEFORE.test(page) ? 20 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 60,
  partialTitle: 25,
  term: 5,
  partialTerm: 2,
};
