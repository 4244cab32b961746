// SPDX-License-Identifier: Apache-2.0
// What live pages of modules share: events that come again after a loss, tables, numbers, and a chart over time (of uPlot, if the page
// has loaded it).

// A feed that says nothing for so long is taken for lost, since a connection whose other end is cut off never ends.
const SILENCE_MS = 5000;
const RETRY_MS = 1000;
// Points of a chart: ten minutes of one each second.
const POINTS_MAX = 600;

// Reads server-sent events for as long as the page is there. `handlers` has a function for each kind of event, which is given what its
// JSON says; events may come again after a loss. `status` is the element that says how the connection is.
export function connect(url, handlers, status) {
  let source;
  let timer;
  const say = (state, text) => {
    // Only changes are said aloud.
    if (status.dataset.state !== state) {
      status.dataset.state = state;
      status.textContent = text;
    }
  };
  const later = (wait) => {
    clearTimeout(timer);
    timer = setTimeout(open, wait);
  };
  const lost = () => say("lost", "connection lost, trying again");
  function open() {
    if (source) {
      source.close();
      lost();
    }
    const own = new EventSource(url);
    source = own;
    later(SILENCE_MS);
    own.onerror = () => {
      if (own === source) {
        lost();
        // The browser comes back by itself, but for answers that are no events.
        if (own.readyState === EventSource.CLOSED) {
          later(RETRY_MS);
        }
      }
    };
    for (const [kind, handle] of Object.entries(handlers)) {
      own.addEventListener(kind, (event) => {
        if (own === source) {
          say("live", "live");
          later(SILENCE_MS);
          handle(JSON.parse(event.data));
        }
      });
    }
  }
  say("connecting", "connecting");
  open();
}

// Returns a function that has `draw` called with the next picture, once however often it was called.
export function onceAPicture(draw) {
  let asked = false;
  return () => {
    if (!asked) {
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        draw();
      });
    }
  };
}

// Returns a number as the reader's language has it.
export function number(value) {
  return value.toLocaleString();
}

// Returns a number in short, such as `1.2 M`.
export function short(value) {
  const steps = ["", " k", " M", " G", " T", " P"];
  let step = 0;
  let rest = Math.abs(value);
  while (rest >= 1000 && step < steps.length - 1) {
    rest /= 1000;
    step += 1;
  }
  return (step > 0 || !Number.isInteger(rest) ? rest.toFixed(1) : String(rest)) + steps[step];
}

// Gives a table these rows, each a list of texts and numbers; what is the same already stays as it is.
export function fill(table, rows) {
  const body = table.tBodies[0] ?? table.createTBody();
  while (body.rows.length > rows.length) {
    body.deleteRow(-1);
  }
  rows.forEach((cells, at) => {
    const row = body.rows[at] ?? body.insertRow();
    cells.forEach((value, column) => {
      const cell = row.cells[column] ?? row.insertCell();
      const text = typeof value === "number" ? number(value) : value;
      if (cell.textContent !== text) {
        cell.textContent = text;
        cell.className = typeof value === "number" ? "number" : "";
      }
    });
  });
}

// Draws values over time in an element, whose label tells the last ones to those who do not see it. A series has a label, a colour of
// the style sheet, the side (1 or 3) and name of its scale, the unit, and perhaps `filled`. Returns `add`, which takes seconds since 1970
// and a value for each series; what is no later than the last one is left out.
export function chart(element, series) {
  const times = [];
  const values = series.map(() => []);
  let plot;
  const colour = (name) => getComputedStyle(element).getPropertyValue(name).trim();
  const build = () => {
    plot?.destroy();
    const axis = (more) => ({ stroke: colour("--text"), grid: { stroke: colour("--line"), width: 1 }, ...more });
    const scales = [...new Map(series.map((one) => [one.scale, one])).values()];
    const options = {
      width: element.clientWidth || 300,
      height: 260,
      scales: Object.fromEntries(scales.map((one) => [one.scale, { range: (_, low, high) => [0, Math.max(high, 1)] }])),
      axes: [axis({})].concat(
        scales.map((one) =>
          axis({
            scale: one.scale,
            side: one.side,
            size: 64,
            grid: { show: one.side === 3, stroke: colour("--line"), width: 1 },
            values: (_, ticks) => ticks.map(short),
          }),
        ),
      ),
      series: [{ label: "time" }].concat(
        series.map((one) => ({
          label: one.label,
          scale: one.scale,
          stroke: colour(one.colour),
          fill: one.filled ? `${colour(one.colour)}33` : undefined,
          width: 2,
          value: (_, value) => (value == null ? "–" : `${short(value)} ${one.unit}`),
        })),
      ),
    };
    plot = new uPlot(options, [times, ...values], element);
  };
  const draw = onceAPicture(() => {
    plot.setData([times, ...values]);
    const last = series.map((one, at) => `${one.label}: ${short(values[at].at(-1) ?? 0)} ${one.unit}`);
    element.setAttribute("aria-label", `Over the last ${times.length} seconds; at last ${last.join(", ")}`);
  });
  build();
  new ResizeObserver(() => plot.setSize({ width: element.clientWidth || 300, height: 260 })).observe(element);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", build);
  return {
    // Whether the picture stays as it is, while values go on being added.
    held: false,
    add(time, row) {
      // What came before a loss comes again after it.
      if (times.length > 0 && time <= times.at(-1)) {
        return;
      }
      times.push(time);
      row.forEach((value, at) => values[at].push(value));
      if (times.length > POINTS_MAX) {
        [times, ...values].forEach((list) => list.shift());
      }
      if (!this.held) {
        draw();
      }
    },
  };
}
