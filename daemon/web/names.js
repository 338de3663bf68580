// SPDX-License-Identifier: Apache-2.0
'use strict';

// The most characters of a name that are shown in one place but the tooltip.
const MOST_LETTERS = 200;

// At most `most` characters, with a mark where the rest is missing.
function cutEnd(text, most) {
  if (text.length <= most) return text;
  let end = Math.max(0, most - 1);
  // Half of a pair is no character.
  if (/[\ud800-\udbff]/.test(text[end - 1] ?? '')) --end;
  return text.slice(0, end) + '…';
}

// Where the bracket at `open` is closed; -1 if it is not. '<' and '>' of
// operators are no brackets.
function closing(name, open) {
  let depth = 0;
  for (let i = open; i < name.length; ++i) {
    const c = name[i];
    if (i > open && (c === '<' || c === '>') &&
        (isOperator(name.slice(0, i)) || name[i - 1] === '-')) {
      continue;
    }
    if ('(<[{'.includes(c)) ++depth;
    if (')>]}'.includes(c) && --depth === 0) return i;
  }
  return -1;
}

// Whether a '(' begins the arguments of a call, and no part of a name, such as
// Go's receivers and "(anonymous namespace)".
function beginsArguments(name, open) {
  return !name.startsWith('(anonymous', open) &&
      !name.startsWith('(*', open) && !name.startsWith('(.', open) &&
      open > 0 && !/[\s(]/.test(name[open - 1]);
}

// Whether what follows `before` belongs to an operator's name.
function isOperator(before) {
  return /(?:^|\W)operator[^\w\s(]*$/.test(before.slice(-16));
}

const OPERATOR = new RegExp('^operator(?:' + [
  '\\(\\)', '\\[\\]', '<=>', '<<=?', '>>=?', '->\\*?', '&&', '\\|\\|', '\\+\\+',
  '--', '[<>=!+\\-*/%^&|~,]=?',
].join('|') + ')(?: (?=<))?');

// The symbol of an operator at `from`, where its template arguments begin
// behind it or not: "operator<< " of "operator<< <char>(A)". '' elsewhere.
function operatorAt(name, from) {
  if (name[from] !== 'o' || /\w/.test(name[from - 1] ?? '')) return '';
  return OPERATOR.exec(name.slice(from, from + 16))?.[0] ?? '';
}

// What is left of a name without its arguments, template arguments and return
// type: "std::pair<A, B> ns::f<C>(D) const" is "ns::f<…>". Names that are
// written in another way stay as they are.
function shortName(name) {
  let short = '';
  let lastWord = 0;  // where the name itself begins in `short`
  let hasArguments = false;
  for (let i = 0; i < name.length; ++i) {
    const c = name[i];
    const symbol = operatorAt(name, i);
    if (symbol) {
      short += symbol.trimEnd();
      i += symbol.length - 1;
      if (name[i + 1] !== '<') continue;
      i = closing(name, i + 1);
      if (i < 0) return name;
      short += '<…>';
    } else if (c === '<' && /[\w$~]$/.test(short.slice(-1))) {
      const end = closing(name, i);
      if (end < 0) return name;
      short += '<…>';
      i = end;
    } else if (c === '(' && beginsArguments(name, i)) {
      const end = closing(name, i);
      if (end < 0) return name;
      hasArguments = true;
      const rest = name.slice(end + 1);
      const isLast = !/^(?:::|\.)/.test(rest);
      if (!isLast) short += '(…)';
      i = end;
      // What stands behind the arguments, but for what tells parts apart.
      if (isLast) {
        short += /( \[clone [^\]]*\])?$/.exec(rest)[0];
        break;
      }
    } else if (c === '(' || c === '{' || c === '<') {
      const end = closing(name, i);
      if (end < 0) return name;
      short += name.slice(i, end + 1);
      i = end;
    } else {
      short += c;
      if (c === ' ' && !/(?:^|\W)operator $/.test(short)) {
        lastWord = short.length;
      }
    }
  }
  const cloned = short.indexOf(' [clone');
  if (!hasArguments || (cloned >= 0 && lastWord > cloned)) return short;
  return short.slice(lastWord) || name;
}

// Where a symbol's version or what a compiler adds to names begins.
const SUFFIX = /@|\.(?:isra|part|cold|constprop|llvm|lto_priv)\b/;

const QUALIFIER_END = /^(?:::[\w$~(<{]|[./][A-Za-z_$(<])/;

// Where the qualifiers of a short name end: behind each "::", '.' or '/' that
// is in no bracket. A name with spaces is none of qualifiers.
function qualifierEnds(short) {
  if (/^\[|\s/.test(short)) return [];
  const ends = [];
  const suffix = short.search(SUFFIX);
  const end = suffix < 0 ? short.length : suffix;
  for (let i = 0; i < end; ++i) {
    if ('(<[{'.includes(short[i])) {
      const end = closing(short, i);
      if (end < 0) break;
      i = end;
    } else if (QUALIFIER_END.test(short.slice(i, i + 3))) {
      if (short[i] === ':') ++i;
      if (i > 0) ends.push(i + 1);
    }
  }
  return ends;
}

// A frame's name where there is little room. What commands are called has no
// parts.
function fitFrame({name, kind}, letters) {
  return kind === KIND_COMMAND ? cutEnd(name, Math.min(letters, MOST_LETTERS)) :
                                 fitName(name, letters);
}

// A name in `letters` characters, by way of what tells least: arguments, then
// qualifiers from the left; the end of the name stays as long as it can.
function fitName(name, letters) {
  const most = Math.min(letters, MOST_LETTERS);
  if (name.length <= most) return name;
  const short = shortName(name);
  if (short.length <= most) return short;
  let last = short;
  for (const end of qualifierEnds(short)) {
    last = '…' + short.slice(end);
    if (last.length <= most) return last;
  }
  return cutEnd(last.replace(/^…/, ''), most);
}
