// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ub::emu {

// Of the page around the pictures; light or dark as its reader has it.
constexpr const char* kPageStyle = R"css(
:root{--page:#fff;--ink:#1d2126;--pale:#5c636b;--line:#dfe3e8;--soft:#f5f7f9;--good:#00734f;--soso:#8a5a00;
--bad:#b3261e;--calm:#42526b;--link:#0a5ca8}
@media(prefers-color-scheme:dark){:root{--page:#15181c;--ink:#e8eaed;--pale:#a0a7af;--line:#2f353c;--soft:#1c2025;
--good:#4fd1a1;--soso:#f0b95a;--bad:#ff8a80;--calm:#a9b8cf;--link:#7fbcff}}
*{box-sizing:border-box}
html{color-scheme:light dark;scroll-behavior:smooth}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.55 system-ui,-apple-system,"Segoe UI",
"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1180px;margin:0 auto;padding:36px 28px 80px}
h1{font-size:28px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}
h2{font-size:20px;margin:56px 0 14px;padding-top:18px;border-top:1px solid var(--line)}
h3{font-size:16px;margin:0 0 4px}.two h3{margin-top:14px}
p{margin:0 0 10px;max-width:78ch}
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}
.lead{color:var(--pale);font-size:16px;margin-bottom:20px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(118px,1fr));gap:10px;margin:18px 0 22px}
.tile{background:var(--soft);border:1px solid var(--line);border-radius:8px;padding:10px 14px}
.tile b{display:block;font-size:26px;line-height:1.2}.tile span{color:var(--pale);font-size:13px}
.two{display:grid;grid-template-columns:1fr 1fr;gap:28px}
.two ul,.notes ul{margin:4px 0 0;padding-left:18px}.two li,.notes li{margin:3px 0}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:14px 0;font-size:14px}
.facts dt{color:var(--pale)}.facts dd{margin:0;overflow-wrap:anywhere}
code,.hash{font:13px/1.5 ui-monospace,"SF Mono",Menlo,"DejaVu Sans Mono",monospace}
nav{display:flex;flex-wrap:wrap;gap:4px 14px;margin:18px 0 0;font-size:14px}
section{margin:0 0 44px;scroll-margin-top:16px}
.figure{display:grid;grid-template-columns:minmax(0,680px) minmax(0,1fr);gap:22px;align-items:start;margin-top:10px}
figure{margin:0}svg{display:block;max-width:100%;height:auto}
.wide svg{width:100%}
table{border-collapse:collapse;font-size:14px;width:100%}
th{font-weight:600;text-align:left;color:var(--pale);font-size:13px}
th,td{padding:5px 10px 5px 0;border-bottom:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap}
.scroll{overflow-x:auto}
.name{white-space:nowrap}
.verdict{white-space:nowrap;font-weight:600}
.good{color:var(--good)}.soso{color:var(--soso)}.bad{color:var(--bad)}.calm{color:var(--calm)}
.why{color:var(--pale);font-size:13px}
.note,.notes{color:var(--pale);font-size:14px}.notes li{max-width:110ch}
.banner{border-left:4px solid var(--soso);background:var(--soft);padding:10px 14px;margin:14px 0;
border-radius:0 6px 6px 0}
details{margin:10px 0 0}details.reason{display:inline;margin:0;color:var(--pale);font-size:13px}
.reason summary{display:inline;font-size:13px}summary{cursor:pointer;color:var(--link);font-size:14px}
details table{margin-top:8px;font-size:13px}
footer{color:var(--pale);font-size:13px;margin-top:60px;border-top:1px solid var(--line);padding-top:14px}
@media(max-width:980px){.figure,.two{grid-template-columns:1fr}}
@media print{main{max-width:none}details{display:none}section{break-inside:avoid}}
)css";

}  // namespace ub::emu
