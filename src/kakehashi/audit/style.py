"""The style sheet of the audit's page."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c1b19; --soft: #6b6862; --paper: #fbfaf7;
  --card: #ffffff; --rule: #e3dfd6; --bar: #4a6b8a; --mark: #f6e3a1; --mark-ink: #5c4400;
  --error: #b3261e; --warning: #a86700; --note: #3b6ea5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e9e6df; --soft: #a09b91; --paper: #171614;
  --card: #201f1c; --rule: #38352f; --bar: #86a9c9; --mark: #57470f; --mark-ink: #f5dd8c;
  --error: #ff8a80; --warning: #f2b84b; --note: #8fbce6; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2.5rem 1.25rem 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 "Iowan Old Style", "Palatino Linotype", Palatino, Georgia,
  "Noto Serif", "Noto Serif CJK JP", serif; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0; font-weight: 600; letter-spacing: -0.01em; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 0.5rem; font-weight: 600; }
h2 small { font-weight: 400; font-size: 1rem; color: var(--soft); }
h3 { font-size: 1.05rem; margin: 0; font-weight: 600; overflow-wrap: anywhere; }
p { margin: 0.35rem 0; }
.lead { font-size: 1.1rem; color: var(--soft); }
.files, .count, footer { color: var(--soft); font-size: 0.9rem; overflow-wrap: anywhere; }
nav { margin: 1rem 0 0; display: flex; gap: 0.5rem; flex-wrap: wrap; }
nav a { text-decoration: none; border: 1px solid currentColor; border-radius: 99px;
  padding: 0.1rem 0.8rem; font-size: 0.9rem; }
.error { --accent: var(--error); } .warning { --accent: var(--warning); }
.note { --accent: var(--note); }
nav a { color: var(--accent); }
article { background: var(--card); border: 1px solid var(--rule);
  border-left: 4px solid var(--accent); border-radius: 6px; padding: 0.9rem 1.1rem;
  margin: 0.8rem 0; }
code { font: 0.85em ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace;
  color: var(--soft); }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr));
  gap: 1rem; margin: 1rem 0; }
figure { margin: 0; background: var(--card); border: 1px solid var(--rule); border-radius: 6px;
  padding: 0.7rem 0.9rem; }
figcaption { font-size: 0.95rem; margin-bottom: 0.3rem; }
svg.histogram { width: 100%; height: auto; display: block; }
svg.histogram rect { fill: var(--bar); }
svg.histogram line { stroke: var(--rule); }
svg.histogram text { fill: var(--soft); font: 10px ui-sans-serif, system-ui, sans-serif; }
dl { display: flex; justify-content: space-between; margin: 0.4rem 0 0;
  font-variant-numeric: tabular-nums; }
dt { font-size: 0.75rem; color: var(--soft); } dd { margin: 0; font-size: 0.9rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin-top: 0.6rem; font-size: 0.95rem; }
th { text-align: left; font-weight: 400; font-size: 0.8rem; color: var(--soft); }
th, td { padding: 0.3rem 0.8rem 0.3rem 0; vertical-align: top; border-top: 1px solid var(--rule);
  overflow-wrap: anywhere; }
thead th { border-top: 0; }
td.line { font-variant-numeric: tabular-nums; color: var(--soft); white-space: nowrap; }
td.detail { color: var(--soft); font-size: 0.9rem; min-width: 7rem; overflow-wrap: break-word; }
mark { background: var(--mark); color: var(--mark-ink); border-radius: 3px; padding: 0 0.15em;
  font: 0.85em ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; }
footer { margin-top: 3rem; border-top: 1px solid var(--rule); padding-top: 0.8rem; }
@media print { article, figure { break-inside: avoid; } body { max-width: none; } }
"""
