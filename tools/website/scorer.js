// Points of a page that the search finds: decisions, measurements and changes come after what readers use.
const BEHIND = /^(adr|benchmarks|project\/changelog)/;
var Scorer = {
  score: (result) => result[4] - (BEHIND.test(result[0]) ? 100 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
