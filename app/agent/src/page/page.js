// SPDX-License-Identifier: Apache-2.0
// Asks the agent every two seconds where modules are, and what they count.

const EVERY_MS = 2000;
const ROW = 48, WIDTH = 900, LEFT = 30, NODES = 420, REGIONS = 560;

const number = new Intl.NumberFormat('en');
const element = (id) => document.getElementById(id);
const count = (node, name) => node.counters[name] ?? 0;

function bytes(value) {
  if (value === undefined) return '–';
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) [value, at] = [value / 1000, at + 1];
  return `${at ? value.toFixed(1) : value} ${units[at]}`;
}

function ago(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  return seconds < 120 ? `${seconds} s ago` : `${Math.floor(seconds / 60)} min ago`;
}

function ratio(hits, misses) {
  return hits + misses ? `${(100 * hits / (hits + misses)).toFixed(1)} %` : '–';
}

function cell(row, text, kind) {
  const one = row.insertCell();
  one.textContent = text;
  if (kind) one.className = kind;
}

function regions(site) {
  const more = site.more_regions ? `, and ${number.format(site.more_regions)} more` : '';
  return site.regions.join(', ') + more || '–';
}

function table(sites) {
  const body = document.createElement('tbody');
  for (const site of sites) {
    for (const node of site.nodes) {
      const row = body.insertRow();
      const [hits, misses] = [count(node, 'hits'), count(node, 'misses')];
      cell(row, regions(site));
      cell(row, node.node);
      cell(row, site.rule);
      cell(row, site.health);
      for (const text of [ago(site.seen_s), ratio(hits, misses), number.format(hits), number.format(misses),
        bytes(node.counters['saved-bytes']), bytes(node.counters['origin-bytes']), ago(node.purged_s)]) {
        cell(row, text, 'number');
      }
    }
  }
  element('sites').tBodies[0].replaceWith(body);
}

function draw(parent, kind, attributes, text) {
  const one = document.createElementNS('http://www.w3.org/2000/svg', kind);
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
  if (text !== undefined) one.textContent = text;
  parent.append(one);
}

// The site on the left; each node as far from it as its packets take, and the regions that it answers behind it.
function map(sites) {
  const rows = sites.flatMap((site) => site.nodes.map((node) => ({ site, node })));
  const svg = element('map');
  const height = Math.max(ROW, rows.length * ROW);
  svg.setAttribute('viewBox', `0 0 ${WIDTH} ${height}`);
  svg.replaceChildren();
  const most = Math.max(1, ...rows.map(({ node }) => node.rtt_us ?? 0));
  const said = [];
  rows.forEach(({ site, node }, at) => {
    const y = ROW * (at + 0.5);
    const x = LEFT + 60 + (NODES - LEFT - 60) * (node.rtt_us ?? most) / most;
    draw(svg, 'line', { x1: LEFT, y1: height / 2, x2: x, y2: y });
    draw(svg, 'line', { x1: x, y1: y, x2: REGIONS - 10, y2: y });
    draw(svg, 'circle', { cx: x, cy: y, r: 5 + Math.min(10, 2 * Math.log10(1 + count(node, 'hits'))) });
    const away = node.rtt_us === undefined ? '' : ` (${(node.rtt_us / 1000).toFixed(1)} ms)`;
    draw(svg, 'text', { x: x - 10, y: y - 16 }, `${node.node}${away}`);
    draw(svg, 'text', { x: REGIONS, y: y + 5 }, regions(site));
    said.push(`${node.node}${away} for ${regions(site)}`);
  });
  draw(svg, 'circle', { cx: LEFT, cy: height / 2, r: 12, class: 'site' });
  svg.setAttribute('aria-label', said.join('; ') || 'nothing is deployed');
}

function show(data) {
  const nodes = data.sites.flatMap((site) => site.nodes);
  const sum = (name) => nodes.reduce((all, node) => all + count(node, name), 0);
  element('regions').textContent = number.format(data.regions);
  element('observations').textContent = number.format(data.observations);
  element('hits').textContent = number.format(sum('hits'));
  element('ratio').textContent = ratio(sum('hits'), sum('misses'));
  element('saved').textContent = nodes.some((node) => 'saved-bytes' in node.counters) ? bytes(sum('saved-bytes')) : '–';
  element('more').textContent = data.more ? `and ${number.format(data.more)} more` : '';
  table(data.sites);
  map(data.sites);
}

function state(text, kind) {
  element('status').textContent = text;
  element('status').dataset.state = kind;
}

async function look() {
  try {
    const answer = await fetch('/v1/sites', { signal: AbortSignal.timeout(10000) });
    if (!answer.ok) throw new Error(answer.statusText);
    show(await answer.json());
    state('live', 'live');
  } catch {
    state('connection lost, trying again', 'lost');
  }
  setTimeout(look, EVERY_MS);
}

look();
