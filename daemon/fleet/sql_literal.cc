// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/sql_literal.h"

namespace profd::fleet {
namespace {

bool StandsForItself(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
         (c >= 'a' && c <= 'z') || c == ' ' || c == '-' || c == '_' ||
         c == '.' || c == '/' || c == ':' || c == '@';
}

}  // namespace

void AppendSqlText(std::string_view text, std::string& sql) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  sql += '\'';
  for (const char c : text) {
    if (StandsForItself(c)) {
      sql += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    sql += "\\x";
    sql += kDigits[byte >> 4];
    sql += kDigits[byte & 0xf];
  }
  sql += '\'';
}

std::string SqlText(std::string_view text) {
  std::string sql;
  AppendSqlText(text, sql);
  return sql;
}

}  // namespace profd::fleet
