// SPDX-License-Identifier: Apache-2.0
'use strict';

// A frame of a folded line, as ksym-profile writes it: nothing in it separates
// frames or reads as a count.
function foldedName(name) {
  let safe = name.replace(/;/g, ':').replace(
      /[ .\d]*$/, (end) => end.replace(/ /g, '_'));
  safe = safe.replace(/_\[(.)\]$/, '_($1)');
  return safe === '-' ? '_' : safe;
}

// The samples below a node of a tree, a line for each stack.
function foldedText(tree, node, frames) {
  const lines = [];
  const named = (frame) => foldedName(frames[frame].name);
  const open = tree.pathTo(node).map((n) => named(tree.frame[n]));
  if (tree.rootFrame >= 0) open.unshift(named(tree.rootFrame));
  const above = tree.rootFrame >= 0 ? 1 : 0;
  for (let i = node; i < tree.end[node]; ++i) {
    if (i > node) {
      open.length = tree.depth[i] - 1 + above;
      open.push(named(tree.frame[i]));
    }
    if (tree.self[i] > 0 && open.length > 0) {
      lines.push(`${open.join(';')} ${tree.self[i]}\n`);
    }
  }
  return lines.join('');
}

function xmlText(text) {
  return text.replace(/[<>&"]/g, (c) => (
      {'<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;'}[c]));
}

// One frame of a picture. box: {left, top, width} in pixels.
function svgBox({left, top, width}, {title, label, colour}) {
  return `<g><title>${xmlText(title)}</title><rect x="${left.toFixed(2)}" ` +
      `y="${top}" width="${Math.max(width - 0.5, 0.2).toFixed(2)}" ` +
      `height="17" fill="${colour}"/>` +
      (label === '' ? '' : `<text x="${(left + 3).toFixed(2)}" ` +
       `y="${top + 13}">${xmlText(label)}</text>`) + '</g>\n';
}

// A picture of these boxes below a heading. namespace: SVG's.
function svgText(boxes, {heading, width, height, namespace}) {
  const head = 28;
  return `<svg xmlns="${namespace}" width="${width}" ` +
      `height="${height + head}" viewBox="0 ${-head} ${width} ${height + head}" ` +
      'font-family="monospace" font-size="12">\n' +
      `<rect y="${-head}" width="100%" height="100%" fill="#ffffff"/>\n` +
      `<text x="4" y="-9" font-size="14">${xmlText(heading)}</text>\n` +
      boxes.join('') + '</svg>\n';
}
