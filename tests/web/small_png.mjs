// SPDX-License-Identifier: Apache-2.0
// Pictures of pages for documents: as PNG files with a palette, which take a
// third of the room.

import {deflateSync, inflateSync} from 'node:zlib';

const MOST_COLOURS = 256;
const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const CHANNELS = {2: 3, 6: 4};  // RGB, RGBA

const CRCS = Uint32Array.from({length: 256}, (_, byte) => {
  for (let i = 0; i < 8; ++i) {
    byte = byte & 1 ? 0xedb88320 ^ (byte >>> 1) : byte >>> 1;
  }
  return byte;
});

function crcOf(bytes) {
  let crc = ~0;
  for (const byte of bytes) crc = CRCS[(crc ^ byte) & 255] ^ (crc >>> 8);
  return ~crc >>> 0;
}

function chunk(type, body) {
  const made = Buffer.alloc(12 + body.length);
  made.writeUInt32BE(body.length, 0);
  made.write(type, 4, 'latin1');
  body.copy(made, 8);
  made.writeUInt32BE(crcOf(made.subarray(4, -4)), made.length - 4);
  return made;
}

// What the filter of a row says of a byte, from those to the left, above, and
// to the left of that.
function predicted(filter, left, above, corner) {
  if (filter < 3) return [0, left, above][filter];
  if (filter === 3) return (left + above) >> 1;
  const guess = left + above - corner;
  const [toLeft, toAbove, toCorner] =
      [left, above, corner].map((byte) => Math.abs(guess - byte));
  if (toLeft <= toAbove && toLeft <= toCorner) return left;
  return toAbove <= toCorner ? above : corner;
}

// Width, height and the colours of all pixels, of a file that Chromium wrote.
function decode(png) {
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  const channels = CHANNELS[png[25]];
  const data = [];
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) {
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') {
      data.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
    }
  }
  const raw = inflateSync(Buffer.concat(data));
  const length = width * channels;
  const colours = new Uint32Array(width * height);
  let before = new Uint8Array(length);
  for (let y = 0; y < height; ++y) {
    const from = y * (length + 1);
    const row = Uint8Array.from(raw.subarray(from + 1, from + 1 + length));
    for (let i = 0; i < length; ++i) {
      const isFirst = i < channels;
      row[i] += predicted(raw[from], isFirst ? 0 : row[i - channels], before[i],
                          isFirst ? 0 : before[i - channels]);
    }
    for (let x = 0, i = 0; x < width; ++x, i += channels) {
      colours[y * width + x] = row[i] << 16 | row[i + 1] << 8 | row[i + 2];
    }
    before = row;
  }
  return {width, height, colours};
}

const parts = (colour) => [colour >> 16, colour >> 8 & 255, colour & 255];

function distance(a, b) {
  const [of, to] = [parts(a), parts(b)];
  return Math.max(...of.map((part, i) => Math.abs(part - to[i])));
}

// The colours that are there most, each unlike the ones before it, so that
// every other one is near one of them; of those as near as it can be.
function paletteOf(colours) {
  const counts = new Map();
  for (const colour of colours) {
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const all = [...counts].sort((a, b) => b[1] - a[1]).map(([colour]) => colour);
  for (let least = 1;; ++least) {
    const chosen = [];
    for (const colour of all) {
      if (chosen.every((other) => distance(colour, other) >= least)) {
        chosen.push(colour);
        if (chosen.length > MOST_COLOURS) break;
      }
    }
    if (chosen.length <= MOST_COLOURS) return chosen;
  }
}

export function smallPng(png) {
  const {width, height, colours} = decode(png);
  const palette = paletteOf(colours);
  const places = new Map();
  const rows = Buffer.alloc(height * (width + 1));
  colours.forEach((colour, i) => {
    if (!places.has(colour)) {
      const distances = palette.map((each) => distance(colour, each));
      places.set(colour, distances.indexOf(Math.min(...distances)));
    }
    rows[i + Math.floor(i / width) + 1] = places.get(colour);
  });
  const head = Buffer.from(png.subarray(16, 29));
  head[9] = 3;  // colours of a palette
  return Buffer.concat([
    SIGNATURE, chunk('IHDR', head),
    chunk('PLTE', Buffer.from(palette.flatMap(parts))),
    chunk('IDAT', deflateSync(rows, {level: 9})),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}
