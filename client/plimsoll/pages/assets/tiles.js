
// Arrow keys go from tile to tile; Tab reaches one of them.
function walkTiles(event) {
  const tile = event.target.closest(".tile");
  if (!tile) return;
  const tiles = [...tile.closest(".tiles").querySelectorAll(".tile")];
  const place = tiles.indexOf(tile);
  const row = tiles.filter((each) => each.offsetTop === tiles[0].offsetTop).length;
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row, Home: -place, End: tiles.length - 1 - place };
  if (!(event.key in steps)) return;
  event.preventDefault();
  const next = tiles[Math.max(0, Math.min(tiles.length - 1, place + steps[event.key]))];
  tile.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
