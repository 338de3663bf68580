// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/profile_select.h"

#include <regex.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "daemon/output/text_columns.h"

namespace profd {

struct NamePattern::Compiled {
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    if (is_valid) ::regfree(&expression);
  }
  regex_t expression = {};
  bool is_valid = false;
};

NamePattern::NamePattern(std::unique_ptr<Compiled> compiled)
    : compiled_(std::move(compiled)) {}
NamePattern::NamePattern(NamePattern&&) noexcept = default;
NamePattern& NamePattern::operator=(NamePattern&&) noexcept = default;
NamePattern::~NamePattern() = default;

ksym::Result<NamePattern> NamePattern::Parse(const std::string& text) {
  auto compiled = std::make_unique<Compiled>();
  const int error =
      ::regcomp(&compiled->expression, text.c_str(), REG_EXTENDED | REG_NOSUB);
  if (error != 0) {
    std::array<char, 200> message = {};
    ::regerror(error, &compiled->expression, message.data(), message.size());
    return ksym::Fail(ksym::ErrorCode::kInvalid,
                      "'" + text + "': " + message.data());
  }
  compiled->is_valid = true;
  return NamePattern(std::move(compiled));
}

bool NamePattern::Matches(std::string_view name) const {
  return ::regexec(&compiled_->expression, std::string(name).c_str(), 0,
                   nullptr, 0) == 0;
}

namespace {

void KeepFrames(const std::vector<bool>& kept, const NamePattern& pattern,
                Profile& profile) {
  const auto has = [&](CallStackId stack) {
    return std::ranges::any_of(profile.Stack(stack),
                               [&](FrameId frame) { return kept[frame]; });
  };
  std::erase_if(profile.samples, [&](const ProfileSample& sample) {
    return !has(sample.user) && !has(sample.kernel) &&
           !pattern.Matches(profile.String(sample.comm));
  });
}

// Where in the stack, leaf first, the outermost of these frames is.
std::optional<size_t> OutermostOf(std::span<const FrameId> stack,
                                  const std::vector<bool>& frames) {
  for (size_t i = stack.size(); i > 0; --i) {
    if (frames[stack[i - 1]]) return i - 1;
  }
  return std::nullopt;
}

// "ns::Sort" for "ns::Sort<int>(char*) const".
std::string PlainName(std::string_view name) {
  std::string plain = WithoutArguments(name);
  for (const std::string_view part : {" const", "()", "<>"}) {
    const size_t at = plain.rfind(part);
    if (at != std::string::npos && at + part.size() == plain.size()) {
      plain.resize(at);
    }
  }
  return plain;
}

CallStackId Above(CallStackId stack, size_t place, Profile& profile) {
  const auto frames = profile.Stack(stack).subspan(place + 1);
  // The table's own memory moves when it grows.
  return profile.stacks.Intern(
      std::vector<FrameId>(frames.begin(), frames.end()));
}

}  // namespace

void KeepMatching(const NamePattern& pattern, Profile& profile) {
  std::vector<bool> kept;
  kept.reserve(profile.frames.size());
  for (const Frame& frame : profile.frames) {
    kept.push_back(pattern.Matches(profile.String(frame.name)));
  }
  KeepFrames(kept, pattern, profile);
}

void KeepCallers(std::string_view function, Profile& profile) {
  std::vector<bool> wanted;
  wanted.reserve(profile.frames.size());
  for (const Frame& frame : profile.frames) {
    const std::string_view name = profile.String(frame.name);
    wanted.push_back(name == function || PlainName(name) == function);
  }
  const StringId none = profile.strings.Intern("[no caller]");
  profile.frames.push_back(
      {.name = none, .reason = ksym::Unresolved::kNoSymbol});
  wanted.push_back(false);
  const CallStackId root = profile.stacks.Intern(
      std::vector<FrameId>{static_cast<FrameId>(profile.frames.size() - 1)});
  std::vector<ProfileSample> kept;
  for (ProfileSample sample : profile.samples) {
    if (const auto at = OutermostOf(profile.Stack(sample.user), wanted)) {
      sample.user = Above(sample.user, *at, profile);
      // The kernel's frames are of what the function called.
      sample.kernel = 0;
    } else if (const auto in_kernel =
                   OutermostOf(profile.Stack(sample.kernel), wanted)) {
      sample.kernel = Above(sample.kernel, *in_kernel, profile);
    } else {
      continue;
    }
    const bool has_caller = !profile.Stack(sample.user).empty() ||
                            !profile.Stack(sample.kernel).empty();
    if (!has_caller) sample.user = root;
    kept.push_back(sample);
  }
  profile.samples = std::move(kept);
}

}  // namespace profd
