// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "daemon/service/json_tree.h"
#include "daemon/service/listen_address.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;

constexpr size_t kMaxProblems = 20;
constexpr size_t kMaxPathBytes = 4095;  // PATH_MAX, less its NUL

using Config = ServiceConfig;

// Each returns what is wrong with the value, or nothing.
using Problem = std::optional<std::string>;

Problem Set(const ConfigKey::Number& kind, uint64_t value, Config& config) {
  if (value < kind.least || value > kind.most) {
    return fmt::format("{} is not from {} to {}", value, kind.least, kind.most);
  }
  kind.value(config) = value;
  return std::nullopt;
}

Problem CheckWord(std::span<const std::string_view> words,
                  std::string_view word) {
  if (std::ranges::find(words, word) != words.end()) return std::nullopt;
  return fmt::format("\"{}\" is none of {}", word, fmt::join(words, ", "));
}

Problem Set(const ConfigKey::Choice& kind, std::string_view word,
            Config& config) {
  if (Problem problem = CheckWord(kind.words(), word)) return problem;
  kind.value(config) = word;
  return std::nullopt;
}

Problem Set(const ConfigKey::Path& kind, std::string_view path,
            Config& config) {
  if (!path.empty() && !path.starts_with('/')) {
    return fmt::format("\"{}\" is not an absolute path", path);
  }
  if (path.size() > kMaxPathBytes || path.contains('\0')) {
    return "this is no path: it is too long or has a NUL in it";
  }
  kind.value(config) = path;
  return std::nullopt;
}

// Takes the list's texts, each of which `check` must find nothing wrong with.
template <typename Check>
Problem SetList(const JsonNode& list, const Check& check,
                std::vector<std::string>& value) {
  std::vector<std::string> texts;
  for (const JsonNode& element : list.elements) {
    if (element.type != JsonNode::Type::kText) {
      return fmt::format("wants a list of texts and not {} in it",
                         NameOf(element.type));
    }
    if (Problem problem = check(element.text)) return problem;
    if (std::ranges::find(texts, element.text) != texts.end()) {
      return fmt::format("\"{}\" is there twice", element.text);
    }
    texts.push_back(element.text);
  }
  value = std::move(texts);
  return std::nullopt;
}

Problem Set(const ConfigKey::Addresses& kind, const JsonNode& list,
            Config& config) {
  const auto check = [](const std::string& text) -> Problem {
    const auto parsed = ParseListenAddress(text);
    return parsed ? std::nullopt : Problem(parsed.error().message());
  };
  return SetList(list, check, kind.value(config));
}

Problem Set(const ConfigKey::Words& kind, const JsonNode& list,
            Config& config) {
  const auto check = [&](const std::string& word) {
    return CheckWord(kind.words, word);
  };
  return SetList(list, check, kind.value(config));
}

Problem ReadTargetMember(std::string_view name, const JsonNode& node,
                         PushTarget& target) {
  const auto wants = [&](JsonNode::Type type) -> Problem {
    if (node.type == type) return std::nullopt;
    return fmt::format("{} wants {} and not {}", name, NameOf(type),
                       NameOf(node.type));
  };
  if (name == "samples_per_hour") {
    target.samples_per_hour = node.number;
    return wants(JsonNode::Type::kNumber);
  }
  std::string* const text = name == "url"          ? &target.url
                            : name == "name"       ? &target.name
                            : name == "token_file" ? &target.token_file
                                                   : nullptr;
  if (text == nullptr) {
    return fmt::format(
        "unknown key {} (there are url, name, token_file, samples_per_hour)",
        name);
  }
  *text = node.text;
  return wants(JsonNode::Type::kText);
}

Problem ReadTarget(const JsonNode& node, PushTarget& target) {
  // A bare text is a URL with the defaults of the rest.
  if (node.type == JsonNode::Type::kText) {
    target.url = node.text;
  } else if (node.type != JsonNode::Type::kObject) {
    return fmt::format("wants a list of URLs and objects and not {} in it",
                       NameOf(node.type));
  }
  for (const auto& [name, member] : node.members) {
    if (Problem problem = ReadTargetMember(name, member, target)) {
      return problem;
    }
  }
  const auto parsed = ParsePushUrl(target.url);
  if (!parsed) return parsed.error().message();
  if (target.name.empty() ||
      target.name.find_first_of("{}\n") != std::string::npos) {
    return fmt::format("\"{}\" is no name for an application", target.name);
  }
  if (!target.token_file.empty() && !target.token_file.starts_with('/')) {
    return fmt::format("\"{}\" is not an absolute path", target.token_file);
  }
  return std::nullopt;
}

Problem Set(const ConfigKey::Targets& kind, const JsonNode& list,
            Config& config) {
  std::vector<PushTarget> targets;
  for (const JsonNode& element : list.elements) {
    PushTarget target;
    if (Problem problem = ReadTarget(element, target)) return problem;
    // They would share a directory.
    if (std::ranges::find(targets, target.url, &PushTarget::url) !=
        targets.end()) {
      return fmt::format("\"{}\" is there twice", target.url);
    }
    targets.push_back(std::move(target));
  }
  kind.value(config) = std::move(targets);
  return std::nullopt;
}

bool IsList(const ConfigKey& key) {
  return std::holds_alternative<ConfigKey::Addresses>(key.kind) ||
         std::holds_alternative<ConfigKey::Words>(key.kind) ||
         std::holds_alternative<ConfigKey::Targets>(key.kind);
}

JsonNode::Type TypeOf(const ConfigKey& key) {
  if (IsList(key)) return JsonNode::Type::kList;
  if (std::holds_alternative<ConfigKey::Number>(key.kind)) {
    return JsonNode::Type::kNumber;
  }
  return std::holds_alternative<ConfigKey::Flag>(key.kind)
             ? JsonNode::Type::kFlag
             : JsonNode::Type::kText;
}

Problem SetFromNode(const ConfigKey& key, const JsonNode& node,
                    Config& config) {
  // Wherever it is said what files should be like, they are wanted.
  if (key.path.starts_with("files.")) config.files.are_wanted = true;
  if (node.type != TypeOf(key)) {
    return fmt::format("wants {} and not {}", NameOf(TypeOf(key)),
                       NameOf(node.type));
  }
  if (const auto* number = std::get_if<ConfigKey::Number>(&key.kind)) {
    return Set(*number, node.number, config);
  }
  if (const auto* choice = std::get_if<ConfigKey::Choice>(&key.kind)) {
    return Set(*choice, node.text, config);
  }
  if (const auto* path = std::get_if<ConfigKey::Path>(&key.kind)) {
    return Set(*path, node.text, config);
  }
  if (const auto* list = std::get_if<ConfigKey::Addresses>(&key.kind)) {
    return Set(*list, node, config);
  }
  if (const auto* targets = std::get_if<ConfigKey::Targets>(&key.kind)) {
    return Set(*targets, node, config);
  }
  if (const auto* words = std::get_if<ConfigKey::Words>(&key.kind)) {
    return Set(*words, node, config);
  }
  std::get<ConfigKey::Flag>(key.kind).value(config) = node.flag;
  return std::nullopt;
}

// The names that may stand below `section` ("" or "files.").
std::vector<std::string_view> NamesBelow(std::string_view section) {
  std::vector<std::string_view> names;
  for (const ConfigKey& key : ConfigKeys()) {
    if (!key.path.starts_with(section)) continue;
    std::string_view rest = key.path.substr(section.size());
    const std::string_view name = ksym::TakeField(rest, '.');
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

class ConfigReader {
 public:
  explicit ConfigReader(std::string_view file_name) : file_name_(file_name) {}

  // `section` is "" or ends in a dot. Recurses as deep as keys do.
  void ReadSection(const JsonNode& object, const std::string& section) {
    for (const auto& [name, node] : object.members) {
      const std::string path = section + name;
      // A wrong value does not end the reading: all problems of a file are told
      // at once. What was set before goes with the rest, as Finish() fails
      // then.
      const auto key = std::ranges::find(ConfigKeys(), path, &ConfigKey::path);
      if (key != ConfigKeys().end()) {
        if (auto problem = SetFromNode(*key, node, config_)) {
          Add(node, path, *problem);
        }
      } else if (NamesBelow(path + ".").empty() || name.empty()) {
        Add(node, path,
            fmt::format("unknown key (there are {})",
                        fmt::join(NamesBelow(section), ", ")));
      } else if (node.type != JsonNode::Type::kObject) {
        Add(node, path,
            fmt::format("wants {} and not {}", NameOf(JsonNode::Type::kObject),
                        NameOf(node.type)));
      } else {
        ReadSection(node, path + ".");
      }
    }
  }

  ksym::Result<ServiceConfig> Finish() {
    if (problems_.empty()) return std::move(config_);
    return Fail(ErrorCode::kInvalid,
                fmt::format("{}", fmt::join(problems_, "\n")));
  }

 private:
  void Add(const JsonNode& node, std::string_view path,
           std::string_view problem) {
    if (problems_.size() == kMaxProblems) return;
    problems_.push_back(
        fmt::format("{}:{}: {}: {}", file_name_, node.line, path, problem));
  }

  std::string_view file_name_;
  ServiceConfig config_;
  std::vector<std::string> problems_;
};

}  // namespace

ksym::Status SetFromText(const ConfigKey& key, std::string_view text,
                         ServiceConfig& config) {
  JsonNode node = {.type = TypeOf(key), .text = std::string(text)};
  if (node.type == JsonNode::Type::kNumber) {
    // A text that is no number keeps its type, so that the check of types tells
    // the problem as it does for a file.
    const auto number = ksym::ParseUnsigned(text, 10);
    node.type = number ? node.type : JsonNode::Type::kText;
    node.number = number.value_or(0);
  } else if (node.type == JsonNode::Type::kFlag) {
    node.flag = text == "true";
    if (!node.flag && text != "false") node.type = JsonNode::Type::kText;
  } else if (node.type == JsonNode::Type::kList) {
    while (!text.empty()) {
      node.elements.push_back(
          {.type = JsonNode::Type::kText,
           .text = std::string(ksym::TakeField(text, ','))});
    }
  }
  const auto problem = SetFromNode(key, node, config);
  if (!problem) return {};
  return Fail(ErrorCode::kInvalid, FlagOf(key) + ": " + *problem);
}

ksym::Result<ServiceConfig> ParseConfig(std::string_view text,
                                        std::string_view name) {
  auto tree = ParseJsonTree(text);
  if (!tree) {
    return Fail(tree.error().code(),
                fmt::format("{}:{}", name, tree.error().message()));
  }
  if (tree->type != JsonNode::Type::kObject) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{}:{}: wants an object, {{...}}, and not {}", name,
                            tree->line, NameOf(tree->type)));
  }
  ConfigReader reader(name);
  reader.ReadSection(*tree, "");
  return reader.Finish();
}

}  // namespace profd
