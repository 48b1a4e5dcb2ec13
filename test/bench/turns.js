// Whose turn it is. What one leaves undone, as an index for a pause, falls on the one that follows. So nobody may always follow
// the same one, as it is where each round begins one further down the same list.

/** Those of `all` in the order of this round. In as many rounds as there are, twice as many if that is odd, each follows each other equally often. */
export function inTurn(all, round) {
  const { length } = all;
  // 0, 1, last, 2, last but one and so on: between neighbours lies each distance once (Williams, 1949).
  const places = all.map((_, i) => (i % 2 === 1 ? (i + 1) / 2 : (length - i / 2) % length));
  const order = places.map((place) => all[(place + round) % length]);
  const isMirrored = length % 2 === 1 && Math.floor(round / length) % 2 === 1;
  return isMirrored ? order.reverse() : order;
}
