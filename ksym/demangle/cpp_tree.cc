// SPDX-License-Identifier: Apache-2.0
#include "ksym/demangle/cpp_tree.h"

#include <libiberty/demangle.h>

#include <algorithm>
#include <array>
#include <vector>

namespace ksym {
namespace {

using Component = demangle_component;
using Children = std::array<const Component*, 2>;

// Which member of the union is in use depends on the type.
Children ChildrenOf(const Component& component) {
  switch (component.type) {
    case DEMANGLE_COMPONENT_NAME:
    case DEMANGLE_COMPONENT_OPERATOR:
    case DEMANGLE_COMPONENT_BUILTIN_TYPE:
    case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
    case DEMANGLE_COMPONENT_SUB_STD:
    case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
    case DEMANGLE_COMPONENT_FUNCTION_PARAM:
    case DEMANGLE_COMPONENT_UNNAMED_TYPE:
    case DEMANGLE_COMPONENT_CHARACTER:
    case DEMANGLE_COMPONENT_NUMBER:
      return {};
    case DEMANGLE_COMPONENT_LAMBDA:
    case DEMANGLE_COMPONENT_DEFAULT_ARG:
      return {component.u.s_unary_num.sub};
    case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
      return {component.u.s_extended_operator.name};
    case DEMANGLE_COMPONENT_FIXED_TYPE:
      return {component.u.s_fixed.length};
    case DEMANGLE_COMPONENT_CTOR:
      return {component.u.s_ctor.name};
    case DEMANGLE_COMPONENT_DTOR:
      return {component.u.s_dtor.name};
    default:
      return {component.u.s_binary.left, component.u.s_binary.right};
  }
}

class TreeBounds {
 public:
  TreeBounds(const Component* components, size_t count)
      : components_(components), notes_(count) {
    sorted_.reserve(count);
  }

  bool Hold(const Component* tree) {
    if (!Sort(tree) || Scopes() > kMaxCppScopes) return false;
    // A template parameter stands for one of the arguments, and those are known
    // after a first count.
    return CountWork(1) <= kMaxCppWork &&
           CountWork(largest_argument_) <= kMaxCppWork;
  }

 private:
  enum class Visit : uint8_t { kNone, kBegun, kDone };

  // One component's. Counts stop behind kMaxCppWork.
  struct Note {
    Visit visit = Visit::kNone;
    uint32_t searches = 0;  // looks that a search for a pack takes, from here
    uint32_t work = 0;
  };

  Note& Of(const Component* component) {
    return notes_[static_cast<size_t>(component - components_)];
  }

  // Each component behind those that it has. False if it were its own part.
  bool Sort(const Component* tree) {
    std::vector<const Component*> open;
    open.reserve(notes_.size());
    open.push_back(tree);
    while (!open.empty()) {
      const Component* component = open.back();
      Visit& visit = Of(component).visit;
      if (visit != Visit::kNone) {
        open.pop_back();
        if (visit == Visit::kBegun) sorted_.push_back(component);
        visit = Visit::kDone;
        continue;
      }
      visit = Visit::kBegun;
      for (const Component* child : ChildrenOf(*component)) {
        if (child == nullptr) continue;
        const Visit seen = Of(child).visit;
        if (seen == Visit::kBegun) return false;
        if (seen == Visit::kNone) open.push_back(child);
      }
    }
    return true;
  }

  uint64_t Scopes() const {
    uint64_t templates = 0;
    uint64_t references = 0;
    for (const Component* component : sorted_) {
      const auto type = component->type;
      if (type == DEMANGLE_COMPONENT_TEMPLATE) ++templates;
      if (type == DEMANGLE_COMPONENT_REFERENCE ||
          type == DEMANGLE_COMPONENT_RVALUE_REFERENCE) {
        const Component* to = component->u.s_binary.left;
        references +=
            to != nullptr && to->type == DEMANGLE_COMPONENT_TEMPLATE_PARAM;
      }
    }
    return templates * references;
  }

  uint64_t SearchesOf(const Component* component) {
    return component == nullptr ? 0 : Of(component).searches;
  }
  uint64_t WorkOf(const Component* component) {
    return component == nullptr ? 0 : Of(component).work;
  }

  static uint32_t Bounded(uint64_t count) {
    return static_cast<uint32_t>(std::min(count, kMaxCppWork + 1));
  }

  uint64_t OwnWork(const Component& component, uint64_t parameter) {
    const auto [left, right] = ChildrenOf(component);
    switch (component.type) {
      case DEMANGLE_COMPONENT_PACK_EXPANSION:
        return 1 + SearchesOf(left);
      case DEMANGLE_COMPONENT_UNARY:  // sizeof... of a pack is one
        return 1 + SearchesOf(right);
      case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
        return parameter;
      default:
        return 1;
    }
  }

  // The whole tree's, where a template parameter takes as much as `parameter`.
  uint64_t CountWork(uint64_t parameter) {
    for (const Component* component : sorted_) {
      const auto [left, right] = ChildrenOf(*component);
      const bool ends = component->type == DEMANGLE_COMPONENT_PACK_EXPANSION;
      Note& note = Of(component);
      note.searches =
          ends ? 1 : Bounded(1 + SearchesOf(left) + SearchesOf(right));
      note.work = Bounded(OwnWork(*component, parameter) + WorkOf(left) +
                          WorkOf(right));
      if (component->type == DEMANGLE_COMPONENT_TEMPLATE_ARGLIST) {
        largest_argument_ = std::max(largest_argument_, WorkOf(left));
      }
    }
    return WorkOf(sorted_.back());
  }

  const Component* components_;
  std::vector<Note> notes_;
  std::vector<const Component*> sorted_;
  uint64_t largest_argument_ = 1;
};

}  // namespace

bool CanWriteTree(const demangle_component* tree,
                  const demangle_component* components, size_t count) {
  return TreeBounds(components, count).Hold(tree);
}

}  // namespace ksym
