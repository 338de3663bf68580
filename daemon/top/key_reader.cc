// SPDX-License-Identifier: Apache-2.0
#include "daemon/top/key_reader.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "ksym/base/printable.h"

namespace profd {
namespace {

constexpr char kEsc = '\x1b';

using Kind = Key::Kind;

struct SequenceRow {
  std::string_view bytes;  // behind ESC
  Kind kind;
};
// As xterm and the Linux console send them, with both modes of cursor keys.
constexpr std::array kSequences = {
    SequenceRow{"[A", Kind::kUp},      SequenceRow{"OA", Kind::kUp},
    SequenceRow{"[B", Kind::kDown},    SequenceRow{"OB", Kind::kDown},
    SequenceRow{"[C", Kind::kRight},   SequenceRow{"OC", Kind::kRight},
    SequenceRow{"[D", Kind::kLeft},    SequenceRow{"OD", Kind::kLeft},
    SequenceRow{"[5~", Kind::kPageUp}, SequenceRow{"[6~", Kind::kPageDown},
    SequenceRow{"[H", Kind::kHome},    SequenceRow{"OH", Kind::kHome},
    SequenceRow{"[1~", Kind::kHome},   SequenceRow{"[7~", Kind::kHome},
    SequenceRow{"[F", Kind::kEnd},     SequenceRow{"OF", Kind::kEnd},
    SequenceRow{"[4~", Kind::kEnd},    SequenceRow{"[8~", Kind::kEnd},
};

// The bytes of the sequence behind ESC (ECMA-48, section 5.4); nothing: its end
// has not come.
std::optional<size_t> SequenceSize(std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (text.front() == 'O') {
    return text.size() < 2 ? std::nullopt : std::optional<size_t>(2);
  }
  if (text.front() != '[') return 0;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] >= '@' && text[i] <= '~') return i + 1;
    // No sequence goes on with such a byte.
    if (text[i] < ' ' || text[i] > '~') return i;
    if (i >= KeyReader::kMaxSequenceBytes) return i + 1;
  }
  return std::nullopt;
}

// Bytes of the character that begins so; 0: none does.
size_t CharacterSize(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0x80) return 1;
  // Other bytes begin no character (RFC 3629).
  if (byte >= 0xc2 && byte < 0xe0) return 2;
  if (byte >= 0xe0 && byte < 0xf0) return 3;
  return byte >= 0xf0 && byte < 0xf5 ? 4 : 0;
}

std::optional<Kind> ControlKey(char byte) {
  switch (byte) {
    case '\r':
    case '\n':
      return Kind::kEnter;
    case '\b':
    case '\x7f':
      return Kind::kBackspace;
    case '\x15':
      return Kind::kErase;
    case '\x0c':
      return Kind::kRedraw;
    default:
      return std::nullopt;
  }
}

bool TakeSequence(std::string_view& text, std::vector<Key>& keys) {
  const auto size = SequenceSize(text.substr(1));
  if (!size) return false;
  if (*size == 0) {
    keys.push_back({.kind = Kind::kEscape});
  } else {
    const auto found = std::ranges::find(kSequences, text.substr(1, *size),
                                         &SequenceRow::bytes);
    if (found != kSequences.end()) keys.push_back({.kind = found->kind});
  }
  text.remove_prefix(1 + *size);
  return true;
}

}  // namespace

bool KeyReader::TakeOne(std::string_view& text, std::vector<Key>& keys) {
  if (text.front() == kEsc) return TakeSequence(text, keys);
  if (const auto control = ControlKey(text.front())) {
    keys.push_back({.kind = *control});
    text.remove_prefix(1);
    return true;
  }
  const size_t size = std::max<size_t>(CharacterSize(text.front()), 1);
  if (text.size() < size) return false;
  const std::string_view character = text.substr(0, size);
  if (ksym::Printable(character) != character) {
    // Only the first byte is known to be none: a key may be behind it.
    text.remove_prefix(1);
    return true;
  }
  keys.push_back({.kind = Kind::kText, .text = std::string(character)});
  text.remove_prefix(size);
  return true;
}

std::vector<Key> KeyReader::Read(std::string_view bytes) {
  pending_ += bytes;
  std::vector<Key> keys;
  std::string_view rest = pending_;
  while (!rest.empty() && TakeOne(rest, keys)) {
  }
  pending_.erase(0, pending_.size() - rest.size());
  return keys;
}

std::vector<Key> KeyReader::GiveUp() {
  const bool is_escape = pending_.starts_with(kEsc);
  pending_.clear();
  if (!is_escape) return {};
  return {{.kind = Kind::kEscape}};
}

}  // namespace profd
