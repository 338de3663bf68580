// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/safe_name.h"

#include <algorithm>
#include <cstddef>

#include "ksym/base/printable.h"

namespace profd {
namespace {

void ReplaceSpacesBeforeCount(std::string& out, size_t begin) {
  for (size_t i = out.size(); i > begin; --i) {
    char& c = out[i - 1];
    if (c == ' ') {
      c = '_';
    } else if (c != '.' && (c < '0' || c > '9')) {
      return;
    }
  }
}

void ReplaceAnnotation(std::string& out, size_t begin) {
  const size_t size = out.size();
  if (size - begin < 4 || out[size - 4] != '_' || out[size - 3] != '[' ||
      out[size - 1] != ']') {
    return;
  }
  out[size - 3] = '(';
  out[size - 1] = ')';
}

void ReplaceMark(std::string& out, size_t begin) {
  const std::string_view name = std::string_view(out).substr(begin);
  if (name == "-" || name == "--") out.replace(begin, 2, name.size(), '_');
}

}  // namespace

void AppendFoldedName(std::string_view name, std::string& out) {
  if (name.empty()) {
    out += "[unknown]";
    return;
  }
  const size_t begin = out.size();
  ksym::AppendPrintable(name, out);
  std::replace(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(), ';',
               ':');
  ReplaceSpacesBeforeCount(out, begin);
  ReplaceAnnotation(out, begin);
  ReplaceMark(out, begin);
}

void AppendJsonText(std::string_view name, std::string& out) {
  for (;;) {
    const size_t special = std::min(name.find_first_of("\"\\"), name.size());
    ksym::AppendPrintable(name.substr(0, special), out);
    if (special == name.size()) return;
    out += '\\';
    out += name[special];
    name.remove_prefix(special + 1);
  }
}

}  // namespace profd
