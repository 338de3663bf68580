// SPDX-License-Identifier: Apache-2.0
#include "daemon/labels/container_state.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using Json = nlohmann::json;

// What is in JSON, one value after the other. Names are the library's.
// NOLINTBEGIN(readability-identifier-naming)
class StateReader : public nlohmann::json_sax<Json> {
 public:
  bool null() final { return true; }
  bool boolean(bool /*value*/) final { return true; }
  bool number_integer(number_integer_t /*value*/) final { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) final { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) final {
    return true;
  }
  bool binary(binary_t& /*value*/) final { return true; }
  bool string(string_t& value) final { return OnText(value); }
  bool key(string_t& value) final {
    key_ = value;
    return true;
  }
  bool start_object(size_t /*elements*/) final { return Enter('{'); }
  bool end_object() final { return Leave(); }
  bool start_array(size_t /*elements*/) final { return Enter('['); }
  bool end_array() final { return Leave(); }
  bool parse_error(size_t /*position*/, const std::string& /*last_token*/,
                   const nlohmann::detail::exception& /*error*/) final {
    return false;
  }

 protected:
  // A text, whose key is key() if it is directly in an object. False: refused.
  virtual bool OnText(const std::string& text) = 0;
  // An object or a list was left.
  virtual bool OnLeft() { return true; }

  // The brackets that are open.
  const std::string& open() const { return open_; }
  // The last key, and so also that of the list that was entered last.
  const std::string& last_key() const { return key_; }

 private:
  bool Enter(char bracket) {
    open_ += bracket;
    return open_.size() <= kMaxStateLevels;
  }
  bool Leave() {
    open_.pop_back();
    return OnLeft();
  }

  std::string open_;
  std::string key_;
};
// NOLINTEND(readability-identifier-naming)

// Takes a value that may be there once.
bool SetOnce(const std::string& text, std::string& value) {
  // RFC 8259 leaves open which of two equal keys counts, so that readers could
  // take different ones.
  if (!value.empty() || text.empty()) return false;
  value = text;
  return true;
}

class DockerReader final : public StateReader {
 public:
  std::string id;
  std::string name;

 private:
  bool OnText(const std::string& text) override {
    if (open() != "{") return true;
    if (last_key() == "ID") return SetOnce(text, id);
    if (last_key() == "Name") return SetOnce(text, name);
    return true;
  }
};

class PodmanReader final : public StateReader {
 public:
  ContainerNamesById Take() {
    for (const std::string& id : twice_) names_.erase(id);
    return std::move(names_);
  }

 private:
  bool OnText(const std::string& text) override {
    if (open() == "[{" && last_key() == "id") return SetOnce(text, id_);
    const bool is_name = open() == "[{[" && last_key() == "names";
    if (is_name && name_.empty()) name_ = text;
    return open().starts_with('[');
  }

  bool OnLeft() override {
    if (open() != "[") return true;
    const std::string id = std::exchange(id_, {});
    const std::string name = std::exchange(name_, {});
    if (id.empty() || !IsContainerName(name)) return true;
    if (!names_.emplace(id, name).second) twice_.insert(id);
    return true;
  }

  ContainerNamesById names_;
  std::set<std::string> twice_;
  // The container that is being read.
  std::string id_;
  std::string name_;
};

bool ReadState(std::string_view text, StateReader& reader) {
  return Json::sax_parse(text.begin(), text.end(), &reader);
}

}  // namespace

bool IsContainerName(std::string_view name) {
  constexpr std::string_view kMarks = "_.-";
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9');
  };
  if (name.empty() || name.size() > kMaxContainerNameBytes) return false;
  for (const char c : name) {
    if (!is_plain(c) && !kMarks.contains(c)) return false;
  }
  return is_plain(name.front());
}

Result<std::string> ParseDockerName(std::string_view text,
                                    std::string_view id) {
  DockerReader reader;
  if (!ReadState(text, reader)) {
    return Fail(ErrorCode::kCorrupt, "no state of a container");
  }
  if (reader.id != id) {
    return Fail(ErrorCode::kCorrupt, "the state of another container");
  }
  // Docker puts a slash before names.
  if (reader.name.starts_with('/')) reader.name.erase(0, 1);
  if (!IsContainerName(reader.name)) {
    return Fail(ErrorCode::kCorrupt, "a container without a name");
  }
  return reader.name;
}

Result<ContainerNamesById> ParsePodmanNames(std::string_view text) {
  PodmanReader reader;
  if (!ReadState(text, reader)) {
    return Fail(ErrorCode::kCorrupt, "no list of containers");
  }
  return reader.Take();
}

}  // namespace profd
