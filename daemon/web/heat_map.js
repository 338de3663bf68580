// SPDX-License-Identifier: Apache-2.0
'use strict';

const HEAT_TOP_PIXELS = 14;  // for marks of losses, restarts and rates
const HEAT_AXIS_PIXELS = 16;
const TICK_PIXELS = 90;

// Bits of "marks" in a time line.
const MARK_RESTART = 1;
const MARK_CLOCK = 2;
const MARK_RATE = 4;

const byName = (id) => document.getElementById(id);

// Whether the page is dark.
function darkPage() {
  const {theme} = document.documentElement.dataset;
  return theme ? theme === 'dark' :
      matchMedia('(prefers-color-scheme: dark)').matches;
}

// A canvas of so many pixels as the page has, to be drawn on.
function contextOf(canvas, width, height) {
  const scale = Math.min(devicePixelRatio || 1, 3);
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  const context = canvas.getContext('2d');
  context.scale(scale, scale);
  return context;
}

// The times of a range below what is drawn of it.
function drawTimes(context, range, width, height) {
  context.fillStyle = darkPage() ? '#a4aab5' : '#5c616b';
  context.font = '11px sans-serif';
  context.textAlign = 'center';
  const most = Math.max(2, Math.floor(width / TICK_PIXELS));
  for (const {at, text} of ticksOf(range, most)) {
    const x = (at - range.from) / (range.until - range.from) * width;
    context.fillRect(x, height - HEAT_AXIS_PIXELS, 1, 3);
    const half = context.measureText(text).width / 2;
    context.fillText(text, Math.min(Math.max(x, half), width - half),
                     height - 3);
  }
}

// The canvas of a time line: rows of names, columns of time, a lane for each kind
// of samples. A time is marked by dragging or by keys; who uses it draws the names
// beside it.
class HeatMap {
  // actions: choose({from, until}, {isSecond}): a time was marked; say(text):
  // what the cursor is at; point(row): at which row, -1: none; keep(row,
  // {isSecond}): keep to it, or compare with it; split(seconds): compare what was
  // after it with what was before.
  constructor(actions) {
    this.actions = actions;
    this.canvas = byName('heat');
    this.line = null;
    this.lanes = [];
    this.at = null;  // {step, row}, where the keyboard or the pointer is
    this.anchor = null;  // the step where a marked time begins
    this.isSecond = false;  // the next marked time is what is compared with
    const {canvas} = this;
    canvas.addEventListener('pointerdown', (event) => this.press(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', (event) => this.release(event));
    canvas.addEventListener('pointercancel', () => this.giveUp());
    canvas.addEventListener('pointerleave', () => {
      if (this.pressed === undefined) this.point(null);
    });
    canvas.addEventListener('keydown', (event) => this.key(event));
    canvas.addEventListener('blur', () => this.point(null));
  }

  // Where the cursor is it stays, if there is such a place.
  show(line) {
    const {at} = this;
    this.line = line;
    this.lanes = line ? lanesOf(line) : [];
    this.at = null;
    this.anchor = null;
    this.pressed = undefined;
    this.draw();
    const isThere = at && line && at.step < this.steps &&
        at.row < line.rows.length;
    this.point(isThere ? at : null);
  }

  // A time is being marked, which another line would disturb.
  get isMarking() {
    return this.pressed !== undefined || this.anchor !== null;
  }

  get steps() {
    return this.line?.known_ms.length ?? 0;
  }
  get rowPixels() {
    return this.lanes.length > 0 ? rowPixels(this.lanes) : LANE_PIXELS + 1;
  }
  timeOf(step) {
    return this.line.from + step * this.line.step;
  }

  draw() {
    const {canvas, line} = this;
    const width = canvas.parentElement.clientWidth;
    const rows = Math.max(1, line?.rows.length ?? 0);
    const height = HEAT_TOP_PIXELS + rows * this.rowPixels + HEAT_AXIS_PIXELS;
    this.width = width;
    canvas.style.height = `${height}px`;
    const context = contextOf(canvas, width, height);
    if (!line || width === 0) return;
    this.isDark = darkPage();
    this.drawCells(context);
    this.drawHoles(context, rows);
    this.drawSigns(context);
    drawTimes(context, {from: line.from, until: this.timeOf(this.steps)}, width,
              height);
    this.drawMarks();
  }

  left(step) {
    return step / this.steps * this.width;
  }

  drawCells(context) {
    const {line, isDark} = this;
    for (const lane of this.lanes) {
      line.rows.forEach((row, at) => {
        const top = HEAT_TOP_PIXELS + at * this.rowPixels + lane.top;
        lane.values(row).forEach((value, i) => {
          const known = lane.known[i];
          if (known === 0) return;
          context.fillStyle =
              laneColour(lane.kind, value / known / lane.most, isDark);
          const left = this.left(i);
          // Without a seam between columns that are no whole pixels.
          context.fillRect(left, top, this.left(i + 1) - left + 0.3,
                           lane.height);
        });
      });
    }
  }

  // Time of which nothing is known: hatched, as it is not zero. So is a lane
  // whose kind was not sampled while others were.
  drawHoles(context, rows) {
    const {line} = this;
    this.hatchHoles(context, line.known_ms, HEAT_TOP_PIXELS,
                    rows * this.rowPixels);
    for (const lane of this.lanes) {
      const isOff = (known, i) => Number(known > 0 || line.known_ms[i] === 0);
      for (let row = 0; row < line.rows.length; ++row) {
        this.hatchHoles(context, lane.known.map(isOff),
                        HEAT_TOP_PIXELS + row * this.rowPixels + lane.top,
                        lane.height);
      }
    }
  }
  // Hatches the steps whose number is 0.
  hatchHoles(context, known, top, height) {
    for (let i = known.indexOf(0); i >= 0;) {
      let end = i;
      while (end < known.length && known[end] === 0) ++end;
      this.hatch(context, this.left(i), top, this.left(end) - this.left(i),
                 height);
      i = known.indexOf(0, end);
    }
  }
  hatch(context, left, top, width, height) {
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    context.strokeStyle = this.isDark ? '#4a505b' : '#c3c7ce';
    context.lineWidth = 1;
    context.beginPath();
    for (let x = left - height; x < left + width; x += 7) {
      context.moveTo(x, top + height);
      context.lineTo(x + height, top);
    }
    context.stroke();
    context.restore();
  }

  drawSigns(context) {
    const {line, isDark} = this;
    for (let i = 0; i < this.steps; ++i) {
      const left = this.left(i), width = Math.max(1.5, this.left(i + 1) - left);
      const lost = line.lost[i];
      if (lost > 0) {
        const share = lost / (lost + line.samples[i]);
        const height = Math.max(3, share * (HEAT_TOP_PIXELS - 1));
        context.fillStyle = isDark ? '#ff8a70' : '#c22a00';
        context.fillRect(left, HEAT_TOP_PIXELS - height, width, height - 1);
      }
      const marks = line.marks[i];
      if (marks === 0) continue;
      context.fillStyle = isDark ? '#e6e7ea' : '#1b1d22';
      context.font = '11px sans-serif';
      context.textAlign = 'center';
      context.fillText(marks & MARK_RESTART ? '▼' : '◆', left + width / 2, 10);
    }
  }

  // The chosen times, as elements above the canvas. a, b: ranges or null.
  mark(a, b) {
    this.a = a;
    this.b = b;
    this.drawMarks();
  }
  drawMarks() {
    this.placeMark(byName('mark-a'), this.isSecond ? this.a : this.now() ?? this.a);
    this.placeMark(byName('mark-b'), this.isSecond ? this.now() ?? this.b : this.b);
  }
  // The time that is being marked.
  now() {
    if (this.anchor === null || this.at === null || !this.line) return null;
    const first = Math.min(this.anchor, this.at.step);
    const last = Math.max(this.anchor, this.at.step);
    return {from: this.timeOf(first), until: this.timeOf(last + 1)};
  }
  placeMark(element, range) {
    const end = this.line ? this.timeOf(this.steps) : 0;
    const isSeen = range && this.line && range.from < end &&
        range.until > this.line.from;
    element.hidden = !isSeen;
    if (!isSeen) return;
    const share = (time) => Math.min(1, Math.max(
        0, (time - this.line.from) / (end - this.line.from)));
    element.style.left = `${100 * share(range.from)}%`;
    element.style.width = `${100 * (share(range.until) - share(range.from))}%`;
  }

  // The place under the pointer.
  placeOf({clientX, clientY}) {
    const box = this.canvas.getBoundingClientRect();
    const step = Math.floor((clientX - box.left) / box.width * this.steps);
    const row = Math.floor((clientY - box.top - HEAT_TOP_PIXELS) /
                           this.rowPixels);
    return {step: Math.max(0, Math.min(this.steps - 1, step)),
            row: Math.max(0, Math.min(this.line.rows.length - 1, row))};
  }

  press(event) {
    if (!this.line || this.steps === 0 || event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.pressed = event.pointerId;
    this.wasSecond = this.isSecond;
    if (event.shiftKey) this.isSecond = true;
    this.at = this.placeOf(event);
    this.anchor = this.at.step;
    this.drawMarks();
  }
  move(event) {
    if (!this.line || this.steps === 0) return;
    this.point(this.placeOf(event));
    if (this.pressed !== undefined) this.drawMarks();
  }
  release(event) {
    if (this.pressed === undefined) return;
    this.at = this.placeOf(event);
    this.pressed = undefined;
    this.choose();
    this.isSecond = false;
  }
  giveUp() {
    if (this.pressed === undefined) return;
    this.pressed = undefined;
    this.anchor = null;
    this.isSecond = this.wasSecond;
    this.drawMarks();
  }

  choose() {
    const range = this.now() ??
        (this.at && {from: this.timeOf(this.at.step),
                     until: this.timeOf(this.at.step + 1)});
    this.anchor = null;
    if (range) this.actions.choose(range, {isSecond: this.isSecond});
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.line) return;
    const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1],
                   ArrowDown: [0, 1], PageUp: [-10, 0], PageDown: [10, 0],
                   Home: [-Infinity, 0], End: [Infinity, 0]};
    if (Object.hasOwn(moves, event.key)) {
      this.step(moves[event.key], event.shiftKey);
    } else if (event.key === 'Enter') {
      this.choose();
    } else if (event.key === 'b') {
      this.isSecond = true;
      this.choose();
      this.isSecond = false;
    } else if (['f', 'v'].includes(event.key)) {
      if (this.at) {
        this.actions.keep(this.at.row, {isSecond: event.key === 'v'});
      }
    } else if (event.key === 's') {
      if (this.at) this.actions.split(this.timeOf(this.at.step));
    } else if (event.key === 'Escape') {
      this.anchor = null;
      this.drawMarks();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
  step([columns, rows], marks) {
    const from = this.at ?? {step: this.steps - 1, row: 0};
    if (marks) this.anchor ??= from.step;
    if (!marks && columns !== 0) this.anchor = null;
    const within = (value, count) => Math.max(0, Math.min(count - 1, value));
    this.point(this.at === null ? from : {
      step: within(from.step + columns, this.steps),
      row: within(from.row + rows, this.line.rows.length),
    });
    this.drawMarks();
  }

  // Says what is there and draws a box around it.
  point(at) {
    if (at === null && this.anchor !== null) return;
    this.at = at;
    const cursor = byName('cursor');
    cursor.hidden = at === null;
    this.actions.point(at === null ? -1 : at.row);
    if (at === null) return;
    cursor.style.left = `${this.left(at.step)}px`;
    cursor.style.width =
        `${Math.max(2, this.left(at.step + 1) - this.left(at.step))}px`;
    cursor.style.top = `${HEAT_TOP_PIXELS + at.row * this.rowPixels}px`;
    cursor.style.height = `${this.rowPixels - 1}px`;
    this.actions.say(this.textOf(at));
  }

  textOf({step, row}) {
    const {line} = this;
    const from = this.timeOf(step);
    const parts = [rangeText({from, until: from + line.step})];
    if (line.known_ms[step] === 0) {
      parts.push('nothing is known');
    } else if (line.rows[row]) {
      const values = this.lanes.map(
          (lane) => laneText(lane, line.rows[row], step));
      parts.push(`${this.actions.nameOf(row)}: ${values.join(', ')}`);
    }
    if (line.lost[step] > 0) parts.push(`${line.lost[step]} samples lost`);
    const marks = line.marks[step];
    if (marks & MARK_RESTART) parts.push('the service began anew');
    if (marks & MARK_RATE) parts.push('the rate of sampling changed');
    if (marks & MARK_CLOCK) parts.push('the clock was set back');
    return parts.join('; ');
  }
}

// A curve of one row of a time line below the heat map, from nothing up to its
// own most.
function drawCurve(canvas, line) {
  const width = canvas.clientWidth, height = canvas.clientHeight;
  const steps = line.known_ms.length;
  const values = line.rows[0]?.values ?? [];
  const averages = line.known_ms.map(
      (known, i) => known > 0 ? (values[i] ?? 0) / known : -1);
  const most = averages.reduce((a, b) => Math.max(a, b), 0);
  const context = contextOf(canvas, width, height);
  context.fillStyle = laneColour(line.kind, 0.6, darkPage());
  averages.forEach((average, i) => {
    if (average <= 0 || most === 0) return;
    const tall = Math.max(1, average / most * (height - 2));
    context.fillRect(i / steps * width, height - tall, width / steps + 0.3,
                     tall);
  });
}
