// SPDX-License-Identifier: Apache-2.0
'use strict';

const SLICES = 50;  // of a second
const SLICE_PIXELS = 4;
const LONGEST_FINE_TIME = 180;  // seconds

// The whole seconds that a range is in, or its last ones.
function fineTimeOf({from, until}) {
  const end = Math.ceil(until);
  return {from: Math.max(Math.floor(from), end - LONGEST_FINE_TIME), until: end};
}

// The time of some slices of a line whose step is one, in any order.
function rangeOfSlices(line, a, b) {
  const [first, last] = [Math.min(a, b), Math.max(a, b) + 1];
  const at = (slice) => (line.from * SLICES + slice) / SLICES;
  return {from: at(first), until: at(last), isFine: true};
}

// Where a range lies in the columns of seconds: {column, top, bottom}, in slices.
function columnsOf(line, {from, until}) {
  const columns = [];
  const slice = (time) => Math.round((time - line.from) * SLICES);
  const [first, end] = [Math.max(0, slice(from)),
                        Math.min(line.known_ms.length, slice(until))];
  for (let at = first; at < end;) {
    const column = Math.floor(at / SLICES);
    const next = Math.min(end, (column + 1) * SLICES);
    columns.push({column, top: at - column * SLICES,
                  bottom: next - column * SLICES});
    at = next;
  }
  return columns;
}

// A heat map whose columns are seconds, each from the top down in steps of 20 ms:
// what comes again within a second, or between two, has a pattern. A time is
// marked by dragging or by keys, and may be a few slices long.
class SliceMap {
  // actions: choose({from, until}, {isSecond}): a time was marked; say(text).
  constructor(actions) {
    this.actions = actions;
    this.canvas = byName('slice-map');
    this.line = null;
    this.at = this.anchor = null;  // slices
    const {canvas} = this;
    canvas.addEventListener('pointerdown', (event) => this.press(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', (event) => this.release(event));
    canvas.addEventListener('pointerleave', () => this.leave());
    canvas.addEventListener('keydown', (event) => this.key(event));
    canvas.addEventListener('blur', () => this.leave());
  }

  // A time line in steps of a slice, from a whole second on; null: none.
  show(line) {
    this.line = line;
    this.at = this.anchor = null;
    byName('slices').hidden = line === null;
    if (line === null) return;
    this.values = line.known_ms.map((_, i) => line.rows.reduce(
        (sum, {values}) => sum + values[i], 0));
    this.most = mostOf([this.values], line.known_ms);
    this.draw();
  }
  mark(a, b) {
    this.a = a;
    this.b = b;
    this.draw();
  }

  get seconds() {
    return this.line.known_ms.length / SLICES;
  }

  draw() {
    const {canvas, line} = this;
    if (line === null) return;
    const width = canvas.clientWidth;
    const height = SLICES * SLICE_PIXELS + HEAT_AXIS_PIXELS;
    canvas.style.height = `${height}px`;
    const context = contextOf(canvas, width, height);
    this.wide = width / this.seconds;
    this.drawCells(context);
    this.drawRange(context, this.a, '#1a5fd0');
    this.drawRange(context, this.b, '#c25400');
    this.drawRange(context, this.now(), '#888');
    drawTimes(context, {from: line.from, until: line.from + this.seconds}, width,
              height);
  }

  drawCells(context) {
    const isDark = darkPage();
    this.line.known_ms.forEach((known, i) => {
      context.fillStyle = known === 0 ? (isDark ? '#3a3f49' : '#d5d8de') :
          laneColour('cpu', this.values[i] / known / this.most, isDark);
      const left = Math.floor(i / SLICES) * this.wide;
      context.fillRect(left, i % SLICES * SLICE_PIXELS, this.wide + 0.3,
                       SLICE_PIXELS);
    });
  }
  drawRange(context, range, colour) {
    if (!range) return;
    context.strokeStyle = colour;
    context.lineWidth = 2;
    for (const {column, top, bottom} of columnsOf(this.line, range)) {
      context.strokeRect(column * this.wide, top * SLICE_PIXELS, this.wide,
                         (bottom - top) * SLICE_PIXELS);
    }
  }

  // The time that is being marked, or where the cursor is.
  now() {
    return this.at === null ? null :
        rangeOfSlices(this.line, this.anchor ?? this.at, this.at);
  }

  sliceOf({clientX, clientY}) {
    const box = this.canvas.getBoundingClientRect();
    const within = (value, count) => Math.max(0, Math.min(count - 1, value));
    const column = within(Math.floor((clientX - box.left) / this.wide),
                          this.seconds);
    return column * SLICES +
        within(Math.floor((clientY - box.top) / SLICE_PIXELS), SLICES);
  }
  press(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.at = this.anchor = this.sliceOf(event);
    this.draw();
  }
  move(event) {
    this.point(this.sliceOf(event));
  }
  release(event) {
    if (this.anchor !== null) this.choose(event.shiftKey);
  }
  // No leaving while a pointer is captured.
  leave() {
    this.anchor = this.at = null;
    this.draw();
  }

  choose(isSecond) {
    const range = this.now();
    this.anchor = null;
    if (range) this.actions.choose(range, {isSecond});
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = {ArrowLeft: -SLICES, ArrowRight: SLICES, ArrowUp: -1,
                   ArrowDown: 1};
    if (Object.hasOwn(moves, event.key)) {
      const last = this.line.known_ms.length - 1;
      const from = this.at ?? last;
      this.anchor = event.shiftKey ? this.anchor ?? from : null;
      this.point(Math.max(0, Math.min(last, from + moves[event.key])));
    } else if (event.key === 'Enter' || event.key === 'b') {
      this.choose(event.key === 'b');
    } else if (event.key === 'Escape') {
      this.leave();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  // Says what is there.
  point(at) {
    this.at = at;
    this.draw();
    const known = this.line.known_ms[at];
    const average = averageOf(this.values[at], known, this.line.unit);
    this.actions.say(`${rangeText(this.now())}: ` + (known === 0 ?
        'nothing is known' :
        `${averageText(average)} ${averageUnit(this.line)}`));
  }
}
