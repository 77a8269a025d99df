"""Rules of the page: light and dark, wide and narrow.

On dark pages pictures are turned over, white to black, and keep their hues.
"""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --paper: #ffffff; --rule: #d5dbe1;
  --soft: #5a6672; --head: #f1f4f7; --bad: #b00020;
  --mark: #2a788e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --paper: #15191d; --rule: #3a434c; --soft: #a3afba; --head: #20262c;
  --bad: #ff8a80; --mark: #6fc3d8; }
}
body { color: var(--ink); background: var(--paper); font: 15px/1.5 system-ui, sans-serif;
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0.2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 0.6rem; border-bottom: 1px solid var(--rule);
  padding-bottom: 0.2rem; }
p.note { color: var(--soft); }
p.verdict { font-size: 1.08rem; border-left: 4px solid var(--mark);
  padding: 0.1rem 0 0.1rem 0.9rem; }
pre { background: var(--head); padding: 0.6rem 0.8rem; border-radius: 6px; font-size: 0.9rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
p.failed { color: var(--bad); font-weight: bold; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 0.6rem 0; font-size: 0.92rem; }
caption { text-align: left; color: var(--soft); padding-bottom: 0.2rem; }
th, td { text-align: left; padding: 0.2rem 0.9rem 0.2rem 0.4rem;
  border-bottom: 1px solid var(--rule); vertical-align: top; overflow-wrap: break-word;
  max-width: 30rem; }
td:nth-child(n + 5):last-child { min-width: 12rem; }
thead th { background: var(--head); overflow-wrap: normal; }
tbody th { font-weight: normal; color: var(--soft); }
figure { margin: 1rem 0; overflow-x: auto; }
figure img { max-width: 100%; height: auto; background: #ffffff; border: 1px solid var(--rule);
  border-radius: 6px; padding: 0.5rem; box-sizing: border-box; }
@media (prefers-color-scheme: dark) {
  figure img { filter: invert(0.91) hue-rotate(180deg); border-color: #c8c8c8; }
}
@media (max-width: 44rem) {
  body { margin: 1rem auto; padding: 0 0.8rem; }
  h1 { font-size: 1.25rem; }
  p.note { overflow-wrap: anywhere; }
  th, td { padding-right: 0.6rem; max-width: 16rem; }
  figure img { max-width: none; width: 27rem; }
  figure.partition img { width: 42rem; }
  .wide td:nth-child(n + 5):last-child { min-width: 16rem; }
}
"""
