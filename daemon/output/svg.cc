// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/output/flame_tree.h"
#include "daemon/output/summary.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

constexpr double kWidth = 1200;
constexpr double kMargin = 10;
constexpr double kRowHeight = 16;
constexpr double kHeadHeight = 36;
constexpr double kMinWidth = 0.33;
constexpr double kLetterWidth = 6.7;  // of a 11 px monospaced font
constexpr double kMinText = 3 * kLetterWidth;

// By FlameKind: the hues of the page (daemon/web/view.js).
constexpr std::array<std::string_view, kFlameKinds> kColours = {
    "#d1d1d1", "#f0c061", "#83c6ec", "#6fcdb0", "#e3a0c6",
    "#b0b3b9", "#f2e46b", "#f09e75", "#87cb9d", "#80c6c6"};

void AppendXml(std::string_view text, std::string& out) {
  for (const char c : ksym::Printable(text)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
}

std::string Xml(std::string_view text) {
  std::string out;
  AppendXml(text, out);
  return out;
}

// The bytes of the first `letters` characters of UTF-8 text.
std::string_view FirstLetters(std::string_view text, size_t letters) {
  size_t bytes = 0;
  for (size_t seen = 0; bytes < text.size(); ++bytes) {
    const bool begins =
        (static_cast<unsigned char>(text[bytes]) & 0xc0) != 0x80;
    if (begins && seen++ == letters) break;
  }
  return text.substr(0, bytes);
}

size_t CountLetters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

class Picture {
 public:
  explicit Picture(const Profile& profile) : profile_(profile), tree_(profile) {
    const auto& nodes = tree_.nodes();
    totals_.resize(nodes.size());
    starts_.resize(nodes.size());
    depths_.resize(nodes.size());
    for (const FlameTree::Leaf& leaf : tree_.leaves()) {
      totals_[leaf.node] += leaf.count;
    }
    // A subtree follows its node, so that from the end on each is complete when
    // its parent takes it.
    for (size_t i = nodes.size(); i-- > 1;) {
      totals_[nodes[i].parent] += totals_[i];
    }
    // A node's children stand beside each other from its left edge on.
    std::vector<uint64_t> next(nodes.size());
    for (size_t i = 1; i < nodes.size(); ++i) {
      const uint32_t parent = nodes[i].parent;
      starts_[i] = next[parent];
      next[parent] += totals_[i];
      next[i] = starts_[i];
      depths_[i] = depths_[parent] + 1;
      // Stacks that are not drawn make the picture no higher.
      if (Width(i) >= kMinWidth) deepest_ = std::max(deepest_, depths_[i]);
    }
  }

  void Run(OutputBuffer& out) const {
    const double height = kHeadHeight + kRowHeight * (deepest_ + 1) + kMargin;
    fmt::format_to(
        std::back_inserter(out.text()),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" "
        "height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-family=\"monospace\" "
        "font-size=\"11\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        "<text x=\"{2}\" y=\"22\" font-size=\"14\">",
        kWidth, height, kMargin);
    AppendXml(ProfileTitle(profile_) + Losses(), out.text());
    out.text() += "</text>\n";
    for (size_t i = 0; i < totals_.size(); ++i) {
      if (Width(i) >= kMinWidth) WriteNode(i, out);
    }
    out.text() += "</svg>\n";
  }

 private:
  double Scale() const {
    return (kWidth - 2 * kMargin) /
           static_cast<double>(std::max(totals_[0], uint64_t{1}));
  }
  double Width(size_t node) const {
    return static_cast<double>(totals_[node]) * Scale();
  }

  std::string Losses() const {
    const Accounting& accounting = profile_.accounting;
    if (accounting.lost() == 0) return {};
    return fmt::format(", {} of {} lost", accounting.lost(), accounting.taken);
  }

  void WriteNode(size_t node, OutputBuffer& out) const {
    const FlameFrame* frame =
        node == 0 ? nullptr : &tree_.frames()[tree_.nodes()[node].frame];
    const std::string_view name =
        frame != nullptr ? std::string_view(frame->name) : "all";
    const FlameKind kind = frame != nullptr ? frame->kind : FlameKind::kProcess;
    const double x = kMargin + static_cast<double>(starts_[node]) * Scale();
    const double y = kHeadHeight + kRowHeight * (deepest_ - depths_[node]);
    std::string& text = out.text();
    text += "<g><title>";
    AppendXml(name, text);
    if (frame != nullptr && !frame->object.empty()) {
      text += " [";
      AppendXml(frame->object, text);
      text += ']';
    }
    fmt::format_to(std::back_inserter(text),
                   ": {} {}, {:.2f} %</title><rect x=\"{:.2f}\" "
                   "y=\"{:.0f}\" width=\"{:.2f}\" height=\"{:.0f}\" "
                   "fill=\"{}\"/>",
                   totals_[node], unit_,
                   100.0 * static_cast<double>(totals_[node]) /
                       static_cast<double>(std::max(totals_[0], uint64_t{1})),
                   x, y, std::max(Width(node) - 0.5, 0.2), kRowHeight - 1,
                   kColours[static_cast<size_t>(kind)]);
    AppendLabel(name, {.x = x, .y = y, .width = Width(node)}, text);
    text += "</g>\n";
    out.PassOn();
  }

  struct Box {
    double x = 0;
    double y = 0;
    double width = 0;
  };

  static void AppendLabel(std::string_view name, const Box& box,
                          std::string& out) {
    if (box.width < kMinText) return;
    const auto letters = static_cast<size_t>((box.width - 4) / kLetterWidth);
    fmt::format_to(std::back_inserter(out), "<text x=\"{:.2f}\" y=\"{:.0f}\">",
                   box.x + 2, box.y + kRowHeight - 5);
    if (CountLetters(name) <= letters) {
      AppendXml(name, out);
    } else {
      AppendXml(FirstLetters(name, letters - 1), out);
      out += "…";
    }
    out += "</text>";
  }

  const Profile& profile_;
  const std::string unit_ = Xml(UnitName(profile_.metadata.kinds.front()));
  FlameTree tree_;
  std::vector<uint64_t> totals_;  // by node: samples
  std::vector<uint64_t> starts_;  // samples to the left
  std::vector<uint32_t> depths_;
  uint32_t deepest_ = 0;
};

}  // namespace

void WriteSvg(const Profile& profile, const OutputOptions& /*options*/,
              OutputBuffer& out) {
  Picture(profile).Run(out);
}

}  // namespace profd
