// SPDX-License-Identifier: Apache-2.0
'use strict';

// Times of the history's page: seconds since 1970, whole ones but for those of
// ranges with isFine, which have thousandths. Nothing here knows of a document.

// Lengths of a step that people reckon with.
const STEPS = [1, 10, 60, 120, 900, 3600];
const MOST_STEPS = 900;

// The shortest step with which a time has not too many of them.
function stepOf(seconds) {
  return STEPS.find((step) => step >= LEAST_STEP &&
                              seconds / step <= MOST_STEPS) ??
      Math.ceil(seconds / MOST_STEPS);
}

// A range that is whole steps and has at least one.
function snapped({from, until}, step) {
  const begin = Math.floor(from / step) * step;
  return {from: begin, until: Math.max(begin + step,
                                       Math.ceil(until / step) * step)};
}

const twoDigits = (number) => String(number).padStart(2, '0');

// "02:10:00" of a day of the browser's time zone.
function clockText(seconds, withSeconds = true) {
  const date = new Date(seconds * 1000);
  const text = `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}`;
  return withSeconds ? `${text}:${twoDigits(date.getSeconds())}` : text;
}

function dayText(seconds) {
  const date = new Date(seconds * 1000);
  return `${date.getFullYear()}-${twoDigits(date.getMonth() + 1)}-` +
      twoDigits(date.getDate());
}

// "2026-11-24 02:10:00 to 02:15:00", "2026-11-24 02:10:00.240 to 02:10:00.480".
function rangeText({from, until, isFine}) {
  const isOneDay = dayText(from) === dayText(until);
  const text = (seconds) => clockText(seconds) +
      (isFine ? `.${exactText(seconds).split('.')[1]}` : '');
  return `${dayText(from)} ${text(from)} to ` +
      `${isOneDay ? '' : `${dayText(until)} `}${text(until)}`;
}

// Seconds since 1970 as an address and a question have those of a fine range.
function exactText(seconds) {
  return seconds.toFixed(3);
}

// A moment as a field for times of a day has it, of the browser's time zone, and
// back; null: it is none.
function fieldOfTime(seconds) {
  return `${dayText(seconds)}T${clockText(seconds)}`;
}
function timeOfField(text) {
  const seconds = Math.floor(new Date(text).getTime() / 1000);
  return Number.isFinite(seconds) ? seconds : null;
}

function lengthText(length) {
  const ms = Math.round(length * 1000);
  if (ms % 1000 !== 0) return `${ms} ms`;
  const seconds = ms / 1000;
  if (seconds >= 86400 && seconds % 86400 === 0) return `${seconds / 86400} d`;
  if (seconds >= 3600 && seconds % 3600 === 0) return `${seconds / 3600} h`;
  if (seconds >= 60 && seconds % 60 === 0) return `${seconds / 60} min`;
  return `${seconds} s`;
}

// Where marks stand on an axis of that range so that so many fit at the most:
// full minutes, hours or days of the browser's time zone.
function ticksOf({from, until}, most) {
  const lengths = [10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400];
  const length = lengths.find((each) => (until - from) / each <= most) ??
      Math.ceil((until - from) / most / 86400) * 86400;
  // Local midnight, so that hours of zones with half ones are full as well.
  const midnight = new Date(from * 1000);
  midnight.setHours(0, 0, 0, 0);
  const start = midnight.getTime() / 1000;
  const ticks = [];
  for (let at = start + Math.ceil((from - start) / length) * length; at < until;
       at += length) {
    const isDay = clockText(at) === '00:00:00';
    ticks.push({at, text: isDay ? dayText(at).slice(5) :
                                  clockText(at, length < 60)});
  }
  return ticks;
}

// A value of a time line in the unit that is shown: CPUs for times of CPUs,
// threads for those of waits, else so much in a second.
function averageOf(value, knownMs, unit) {
  if (knownMs <= 0) return 0;
  return unit === 'nanoseconds' ? value / 1e6 / knownMs :
                                  value * 1000 / knownMs;
}

function averageUnit({kind, unit}) {
  if (unit !== 'nanoseconds') return `${unit} per second`;
  return WAIT_KINDS.includes(kind) ? 'threads' : 'CPUs';
}

function averageText(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) :
                        value.toFixed(3);
}
