// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/report/palette.h"

#include <iterator>

namespace ub::emu {
namespace {

// By Okabe and Ito, darker for light pages and lighter for dark ones: at least 3 to 1 to either.
constexpr const char* kOnLight[] = {"#0067a5", "#d55e00", "#008a64", "#b4508a", "#a87400", "#3a8fc2", "#666666"};
constexpr const char* kOnDark[] = {"#4da3e8", "#ff8a47", "#2fc498", "#e08fbe", "#e6ac2e", "#7cc4f0", "#b5b5b5"};

static_assert(std::size(kOnLight) == kColours && std::size(kOnDark) == kColours);

std::string colours(const char* const* palette) {
  std::string css;
  for (size_t i = 0; i < kColours; ++i) css += ".c" + std::to_string(i) + "{color:" + palette[i] + "}";
  return css;
}

// Of page, ink, paler ink, and grid.
std::string surfaces(const char* page, const char* ink, const char* pale, const char* grid) {
  return std::string(".page{fill:") + page + "}.ink{fill:" + ink + "}.pale{fill:" + pale + "}.axis{stroke:" + pale +
         "}.grid{stroke:" + grid + "}.cut{stroke:" + page + "}.over,.within{fill:" + page + "}";
}

constexpr const char* kShapes =
    "svg text{font-family:system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,'DejaVu Sans',sans-serif;"
    "font-size:12px}"
    "svg .title{font-size:13px;font-weight:600}"
    "svg .small{font-size:11px}"
    "svg .strong{font-weight:600}"
    ".axis,.grid{stroke-width:1;shape-rendering:crispEdges}"
    ".trace{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}"
    ".thin{stroke-width:1.4}"
    ".trace.v1{stroke-dasharray:6 4}"
    ".trace.v2{stroke-dasharray:2 4}"
    ".trace.v3{stroke-dasharray:9 3 2 3}"
    ".mark,.bar{fill:currentColor}"
    ".area{fill:none}"
    ".bar.v1{fill-opacity:.6}"
    ".bar.v2{fill-opacity:.38}"
    ".bar.v3{fill-opacity:.2}"
    ".hollow{fill:none;stroke:currentColor;stroke-width:1.6}"
    ".off{stroke:currentColor;stroke-width:1.2;stroke-dasharray:2 2}"
    ".cross{stroke:currentColor;stroke-width:2}"
    ".cut{stroke-width:1}";

}  // namespace

std::string picture_style() {
  return std::string(kShapes) + surfaces("#ffffff", "#1d2126", "#5c636b", "#e4e7eb") + colours(kOnLight) +
         "@media(prefers-color-scheme:dark){" + surfaces("#15181c", "#e8eaed", "#a0a7af", "#2b3036") +
         colours(kOnDark) + "}";
}

}  // namespace ub::emu
