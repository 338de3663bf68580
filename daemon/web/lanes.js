// SPDX-License-Identifier: Apache-2.0
'use strict';

// A row of the heat map has a lane for each kind of samples: a high one of the
// kind that is shown, and a thin one of each other. Nothing here knows of a
// document.
const LANE_PIXELS = 17;        // of a row with one lane
const HIGH_LANE_PIXELS = 11;   // of the first of several
const THIN_LANE_PIXELS = 5;    // of the others
const ROW_GAP_PIXELS = 1;      // behind each lane; behind a row one more

// Kinds with a place and a colour of their own; any other one is the first.
const WAIT_KINDS = ['runnable', 'blocked'];
const WAIT_HUES = {runnable: 305, blocked: 215};

function kindText(kind) {
  return kind === 'cpu' ? 'CPU' : kind;
}

// The kinds of a time line in the order in which a person finds them.
function kindsOf(line) {
  const kinds = (line?.lanes ?? []).map(({kind}) => kind);
  return [...kinds.filter((kind) => !WAIT_KINDS.includes(kind)),
          ...WAIT_KINDS.filter((kind) => kinds.includes(kind))];
}

// The colour of a lane, from the page's own, for no share at all, to a strong one.
function laneColour(kind, share, isDark) {
  if (!(share > 0)) return isDark ? '#1f2228' : '#f4f5f7';
  const strength = Math.sqrt(Math.min(1, share));
  const hue = WAIT_HUES[kind];
  if (hue !== undefined) {
    return isDark ? `hsl(${hue} 75% ${20 + 50 * strength}%)` :
                    `hsl(${hue} 65% ${93 - 48 * strength}%)`;
  }
  return isDark ?
      `hsl(${40 - 26 * strength} 85% ${18 + 47 * strength}%)` :
      `hsl(${42 - 34 * strength} 88% ${92 - 48 * strength}%)`;
}

// The lanes of a time line from the top of a row down: kind and unit; known, the
// milliseconds of each step in which the kind was sampled; values(row); top and
// height within the row, in pixels; most, the largest average of all rows.
function lanesOf(line) {
  const [first, ...others] = line.lanes ??
      [{kind: line.kind, unit: line.unit, known_ms: line.known_ms}];
  const lane = ({kind, unit, known_ms: known}, values, top, height) => ({
    kind, unit, known, values, top, height,
    most: mostOf(line.rows.map(values), known),
  });
  const high = others.length > 0 ? HIGH_LANE_PIXELS : LANE_PIXELS;
  const thin = THIN_LANE_PIXELS + ROW_GAP_PIXELS;
  return [
    lane(first, ({values}) => values, 0, high),
    ...others.map((other, i) => lane(
        other, ({others: lists}) => lists[i],
        high + ROW_GAP_PIXELS + i * thin, THIN_LANE_PIXELS)),
  ];
}

function mostOf(rows, known) {
  let most = 0;
  for (const values of rows) {
    values.forEach((value, i) => {
      if (known[i] > 0) most = Math.max(most, value / known[i]);
    });
  }
  return most;
}

// How high a row is, the room to the next one included.
function rowPixels(lanes) {
  const {top, height} = lanes[lanes.length - 1];
  return top + height + (lanes.length > 1 ? 2 : 1) * ROW_GAP_PIXELS;
}

// What one lane has in a step, in words: "0.512 CPUs", "2.000 threads blocked".
function laneText(lane, row, step) {
  const {kind, unit, known} = lane;
  const isWait = WAIT_KINDS.includes(kind);
  if (known[step] === 0) return `${kindText(kind)} not sampled`;
  const average = averageOf(lane.values(row)[step], known[step], unit);
  return `${averageText(average)} ${averageUnit(lane)}` +
      (isWait ? ` ${kind}` : '');
}

// The kinds, other than the first, of which a time line has something in a
// range.
function otherKindsIn(line, {from, until}) {
  if (!line?.lanes) return [];
  const first = Math.max(0, Math.floor((from - line.from) / line.step));
  const end = Math.ceil((until - line.from) / line.step);
  return line.lanes.slice(1).filter((_, i) => line.rows.some(
      ({others}) => others[i].slice(first, Math.max(0, end)).some(
          (value) => value > 0))).map(({kind}) => kind);
}
