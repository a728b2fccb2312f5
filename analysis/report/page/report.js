"use strict";
// Draws the page from the JSON in the element `model`, which docs/reference/cli.md describes. Names in traces are untrusted: the
// script uses them only as text and as values of attributes, never as HTML.

const MAX_WAITS = 12;
const MAX_ROWS = 50;
const MAX_UNITS = 40;
// Minimum fraction of the timeline for a bar with text.
const ROOM_FOR_TEXT = 0.2;

// The event categories with their names in the legend. Each has a color in the style sheet.
const CATEGORIES = {
  request: "request", wait: "blocked", find: "hit or miss", compile: "compile", load: "load", launch: "launch", copy: "copy",
  memory: "memory", work: "operation", trouble: "problem", other: "other",
};

// The phases of a call: their names and their colors.
const PHASES = {
  queue: ["queue and lookup", "idle"],
  claim: ["compile elsewhere", "wait"],
  find: ["hit", "find"],
  compile: ["compile", "compile"],
  publish: ["publish", "copy"],
  unclaimed: ["idle until load", "idle"],
  load: ["load", "load"],
  ready: ["idle until launch", "idle"],
  launch: ["first launch", "launch"],
};

const BLOCKED_ON = {
  blocking_compile: "a compile", claim_waited: "another process", lease_waited: "another host", synchronized: "a stream",
  hit: "a lookup", loaded: "a driver load", copied: "a copy",
};

// Control characters and characters that change the direction of text are replaced in all texts of the model.
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g;
const model = JSON.parse(document.getElementById("model").textContent,
  (name, value) => typeof value === "string" ? value.replace(UNSAFE, "\ufffd") : value);

// Returns an element. Empty attributes are left out; children that are strings become text.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== "") element.setAttribute(name, value);
  }
  element.append(...children.flat());
  return element;
}

// Returns a colored mark on a bar, with its position as fractions of the bar's width.
function makeMark(color, start, length, whole, attributes, ...children) {
  const mark = make("i", { class: "mark " + color, ...attributes }, ...children);
  placeOn(mark, start, length, whole);
  return mark;
}

function placeOn(element, start, length, whole) {
  const scale = whole > 0 ? 100 / whole : 0;
  const left = Math.min(100, Math.max(0, start * scale));
  element.style.left = left.toFixed(3) + "%";
  element.style.width = Math.min(100 - left, Math.max(0, length * scale)).toFixed(3) + "%";
}

// `0.12 ms`, `182 ms`, `2.31 s`, `4 min 10 s`
function duration(ms) {
  if (ms >= 120000) {
    const seconds = Math.round(ms / 1000);
    return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  }
  if (ms >= 1000) return (ms / 1000).toFixed(ms >= 10000 ? 1 : 2) + " s";
  if (ms >= 0.1) return ms.toFixed(ms >= 100 ? 0 : ms >= 10 ? 1 : 2) + " ms";
  return ms > 0 ? (ms * 1000).toFixed(ms >= 0.01 ? 0 : 1) + " µs" : "0 µs";
}

const counted = (count, one, several) => `${count} ${count === 1 ? one : several}`;
const sumOf = (items, value) => items.reduce((sum, item) => sum + value(item), 0);
const note = (text) => make("p", { class: "note" }, text);
const label = (run) => make("span", { class: "chip " + run.label.split(" ")[0] }, run.label);
const runCell = (run) => make("td", { class: "of-run" }, label(run), " " + run.process);
const cell = (...children) => make("td", {}, ...children);
const code = (text) => make("code", {}, text);
const time = (ms) => make("td", { class: "at" }, duration(ms));
const named = (name, about) => cell(code(name), make("small", {}, about));

// Returns a note if a list is longer than its shown part.
const more = (shown, all, what) => shown < all ? [note(`The first ${shown} of ${all} ${what} are shown.`)] : [];

function table(name, columns, rows) {
  const head = make("tr", {}, columns.map((column) => make("th", { scope: "col" }, column)));
  return make("div", { class: "table" },
    make("table", { class: name }, make("thead", {}, head), make("tbody", {}, rows)));
}

// Adds children to a section of the page.
const fill = (id, ...children) => document.getElementById(id).append(...children.flat());

// The runs of each program side by side.

// Runs are compared by their first result or, if one of them read none through kiln, by their first launch.
const measureOf = (runs) => runs.every((run) => run.first_result_ms !== null) ? "first_result_ms" : "first_launch_ms";
// Returns a sentence that compares the cold and the warm run.
function sentence(program) {
  const both = program.cold !== null && program.warm !== null;
  const runs = (both ? [program.cold, program.warm] : [program.runs[0]]).map((run) => model.runs[run]);
  const measure = measureOf(runs);
  const [cold, warm] = runs.map((run) => run[measure]);
  if (cold === null || warm === null) return "A run launched no kernel.";
  const what = measure === "first_result_ms" ? "The first result was ready" : "The first kernel was launched";
  if (!both) return `${what} ${duration(cold)} after the first event.`;
  const faster = warm > 0 && cold > 1.05 * warm ? `: ${(cold / warm).toFixed(cold >= 10 * warm ? 0 : 1)} times faster` : "";
  return `${what} after ${duration(cold)} cold and after ${duration(warm)} warm${faster}.`;
}

function phasesBar(steps, start, whole, about) {
  return make("div", { class: "bar", role: "img", "aria-label": about }, steps.map((step) => {
    const [name, color] = PHASES[step.step];
    return makeMark(color, step.at_ms - start, step.ms, whole, { title: `${name}: ${duration(step.ms)}` });
  }));
}

// Returns the phases of the unit that was launched first, as a bar and as a list.
function firstCall(run) {
  const call = run.first_call;
  if (!call) return [note("No launch in this trace belongs to a unit, so the first call cannot be shown.")];
  const row = (step, [name, color], value) => make("li", { "data-step": step },
    make("i", { class: "key " + color }), make("span", {}, name), make("b", {}, value));
  const rows = call.steps.map((step) => row(step.step, PHASES[step.step], duration(step.ms)));
  return [
    make("p", { class: "chain-of" }, "First call: ", code(call.unit),
      ` · ${duration(call.total_ms)} from request to launch`),
    phasesBar(call.steps, call.at_ms, call.total_ms, "Phases of the first call"),
    make("ol", { class: "chain" }, row("request", ["request", "request"], "at " + duration(call.at_ms)), rows),
    call.waited_ms > 0 ? [note(`A caller was blocked for ${duration(call.waited_ms)} of this time.`)] : [],
  ].flat();
}

function runCard(run, measure, longest) {
  const first = run[measure];
  const until = measure === "first_result_ms" ? "until the first result" : "until the first kernel was launched";
  const fact = (name, value) => make("div", {}, make("dt", {}, name), make("dd", {}, value));
  const work = (count, ms) => count === 0 ? "none" : `${count} in ${duration(ms)}`;
  const hits = run.tiers.filter((tier) => tier.tier !== "compiled").map((tier) => `${tier.count} ${tier.tier}`);
  const scale = { class: "bar scale", role: "img", "aria-label": "Compared with the slowest run of this program" };
  return make("article", { class: "run" },
    make("header", {},
      make("h3", {}, label(run), " ", make("span", { class: "file" }, run.file.split("/").pop())),
      make("p", { class: "figure" },
        make("b", {}, first === null ? "no launch" : duration(first)),
        make("span", {}, first === null ? "in this trace" : until))),
    make("div", scale, makeMark("first", 0, first ?? 0, longest, { title: `${duration(first ?? 0)} ${until}` })),
    make("dl", { class: "facts" },
      fact("blocked", duration(run.waited_ms)), fact("compiles", work(run.compiles, run.compile_ms)),
      fact("cache hits", hits.join(", ") || "none"), fact("loads", work(run.loads, run.load_ms))),
    firstCall(run));
}

function programSection(program) {
  const runs = program.runs.map((run) => model.runs[run]);
  const measure = measureOf(runs);
  const longest = Math.max(...runs.map((run) => run[measure] ?? 0));
  return make("section", { class: "program" },
    make("h2", {}, program.name), make("p", { class: "sentence" }, sentence(program)),
    make("div", { class: "runs" }, runs.map((run) => runCard(run, measure, longest))));
}

// The waits: times in which a thread was blocked.

function waitRow(wait, index, longest) {
  const attributes = { "data-event": wait.event, "data-run": wait.run, "data-ms": wait.ms, class: index < 3 ? "top" : "" };
  const subject = wait.unit ? [": ", code(wait.unit)] : [];
  return make("tr", attributes,
    make("td", { class: "rank" }, String(index + 1)),
    make("td", { class: "long" }, make("b", {}, duration(wait.ms)),
      make("div", { class: "bar" }, makeMark("wait", 0, wait.ms, longest, {}))),
    runCell(model.runs[wait.run]),
    make("td", { "data-label": "thread" }, wait.who + (wait.background ? " (in the background)" : "")),
    cell(BLOCKED_ON[wait.kind] ?? "", subject), cell(wait.why),
    make("td", { class: "at", "data-label": "at" }, duration(wait.at_ms)));
}

function waitTable() {
  const shown = model.waits.slice(0, MAX_WAITS);
  if (shown.length === 0) return [make("p", {}, "No thread was blocked.")];
  const rows = shown.map((wait, index) => waitRow(wait, index, shown[0].ms));
  return [table("waits", ["", "blocked for", "run", "thread", "blocked on", "cause", "at"], rows),
    ...more(rows.length, model.waits_in_all, "waits")];
}

// The timeline: threads and streams of each run as lanes.

function axis(span) {
  const line = make("div", { class: "axis", "aria-hidden": "true" });
  if (!(span > 0)) return line;
  // The tick distance is 1, 2 or 5 times a power of ten, for four to eight ticks.
  const power = 10 ** Math.floor(Math.log10(span / 6));
  const part = span / 6 / power;
  const tick = power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
  for (let i = 0; i * tick < span * 0.97 && i < 12; ++i) {
    const text = make("span", {}, i === 0 ? "0" : duration(i * tick));
    placeOn(text, i * tick, 0, span);
    line.append(text);
  }
  return line;
}

const kindName = (kind) => kind.replaceAll("_", " ");

function barMark(bar, lane, span) {
  const length = bar.end_ms - bar.at_ms;
  const first = [kindName(bar.kind), bar.unit, bar.ms > 0 ? duration(bar.ms) : ""].filter(Boolean).join(" · ");
  const head = bar.count > 1 ? `${bar.count} adjacent events, first: ${first}` : first;
  const rest = ["at " + duration(bar.at_ms), bar.thread ?? lane.name, bar.origin, bar.message].filter(Boolean).join(" · ");
  return makeMark(bar.category, bar.at_ms, length, span, { title: `${head} · ${rest}`, "data-event": bar.event },
    length > ROOM_FOR_TEXT * span ? make("span", {}, head) : []);
}

function laneLine(lane, span) {
  const bars = lane.rows.flat();
  const counts = Object.entries(CATEGORIES).map(([category, name]) =>
    [sumOf(bars.filter((bar) => bar.category === category), (bar) => bar.count), name]);
  const text = counts.filter(([count]) => count > 0).map(([count, name]) => `${count} × ${name}`).join(", ");
  return make("div", { class: "lane" }, make("span", { class: "lane-name" }, lane.name),
    make("div", { role: "img", "aria-label": `${lane.name}: ${text}` },
      lane.rows.map((row) => make("div", { class: "row" }, row.map((bar) => barMark(bar, lane, span))))));
}

// Makes a timeline wider and narrower, and shows the details of the mark that is pointed at or selected by keys.
function addControls(figure, caption, scroll, wide, detail) {
  const marks = [...wide.querySelectorAll(".row .mark")];
  let picked = -1;
  let width = 1;
  const pick = (index) => {
    if (picked >= 0) marks[picked].classList.remove("picked");
    picked = index;
    marks[index].classList.add("picked");
    detail.textContent = marks[index].title;
    return marks[index];
  };
  const zoom = (factor) => {
    const middle = (scroll.scrollLeft + scroll.clientWidth / 2) / wide.offsetWidth;
    width = Math.min(4096, Math.max(1, width * factor));
    wide.style.width = width * 100 + "%";
    scroll.scrollLeft = middle * wide.offsetWidth - scroll.clientWidth / 2;
  };
  figure.addEventListener("mouseover", (event) => {
    const mark = event.target.closest(".row .mark");
    if (mark) pick(marks.indexOf(mark));
  });
  scroll.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step && marks.length) {
      const mark = pick(Math.min(marks.length - 1, Math.max(0, picked + step)));
      scroll.scrollLeft = mark.offsetLeft - scroll.clientWidth / 2;
    } else if (event.key === "+" || event.key === "=") zoom(2);
    else if (event.key === "-") zoom(0.5);
    else return;
    event.preventDefault();
  });
  caption.append(make("span", { class: "zoom" }, [["−", "Narrower", 0.5], ["+", "Wider", 2]].map(([text, name, factor]) => {
    const button = make("button", { type: "button", "aria-label": name }, text);
    button.addEventListener("click", () => zoom(factor));
    return button;
  })));
}

function timeline(run) {
  const caption = make("figcaption", {}, label(run),
    ` ${run.process} · ${duration(run.span_ms)}, ${counted(run.events, "event", "events")}`);
  const wide = make("div", { class: "wide" }, axis(run.span_ms), run.lanes.map((lane) => laneLine(lane, run.span_ms)));
  const about = `Timeline of ${run.process}, ${run.label}; arrow keys select marks`;
  const scroll = make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": about }, wide);
  const hint = "Point at a mark or use the arrow keys to see its details.";
  const detail = make("p", { class: "detail", "aria-live": "polite" }, hint);
  const omitted = counted(run.events_not_drawn, "event is", "events are");
  const figure = make("figure", { class: "timeline" }, caption, scroll, detail, run.events_not_drawn === 0 ? []
    : note(omitted + " not drawn because of the size limit. The trace contains all events; open it in Perfetto."));
  addControls(figure, caption, scroll, wide, detail);
  return figure;
}

function legend() {
  const items = Object.entries(CATEGORIES).map(([category, name]) =>
    make("li", {}, make("i", { class: "key " + category }), name));
  return make("ul", { class: "legend", "aria-label": "Colors" }, items);
}

// The tiers and the units.

function tierRow(run) {
  const all = sumOf(run.tiers, (tier) => tier.count);
  const color = (tier) => tier.tier === "compiled" ? "compile" : "find";
  let before = 0;
  const marks = run.tiers.map((tier) => {
    before += tier.count;
    return makeMark(color(tier), before - tier.count, tier.count, all, { title: `${tier.tier}: ${tier.count}` });
  });
  const legend = run.tiers.map((tier) => make("li", {}, make("i", { class: "key " + color(tier) }), tier.tier + " ",
    make("b", {}, String(tier.count)), " in " + duration(tier.ms)));
  if (legend.length === 0) legend.push(make("li", { class: "note" }, "no unit was requested"));
  return make("tr", {}, runCell(run), cell(
    make("div", { class: "bar tiers", role: "img", "aria-label": "shares of the cache tiers" }, marks),
    make("ul", { class: "legend" }, legend)));
}

function unitCell(unit, whole) {
  if (!unit) return cell(make("span", { class: "note" }, "not in this run"));
  // The phases without idle times, one after the other.
  let before = 0;
  const steps = unit.steps.filter((step) => PHASES[step.step][1] !== "idle" && step.step !== "launch").map((step) => {
    before += step.ms;
    return { ...step, at_ms: before - step.ms };
  });
  return cell(
    make("span", { class: "origin" }, (unit.origin || "no result") + " · ", make("b", {}, duration(unit.work_ms))),
    phasesBar(steps, 0, whole, "phases of this unit"));
}

function unitTable(program) {
  if (program.units.length === 0) return [];
  const shown = program.units.slice(0, MAX_UNITS);
  const runs = program.runs.slice(0, shown[0].runs.length);
  const longest = Math.max(...shown[0].runs.map((unit) => unit?.work_ms ?? 0));
  const rows = shown.map((row) => make("tr", {},
    make("th", { scope: "row" }, code(row.unit), make("small", {}, row.target)),
    row.runs.map((unit) => unitCell(unit, longest))));
  return [make("h3", {}, program.name), table("units", ["unit", ...runs.map((run) => label(model.runs[run]))], rows),
    more(shown.length, program.units_in_all, "units"), more(runs.length, program.runs.length, "runs")].flat();
}

// The misses, the audit, the problems and the traces.

// Returns a table with a row for each item of a list of all runs; `none` if there are no items.
function tableOfAll(list, what, columns, makeCells, none) {
  const items = model.runs.flatMap((run) => run[list].map((item) => [run, item])).slice(0, MAX_ROWS);
  if (items.length === 0) return [make("p", {}, none)];
  const rows = items.map(([run, item]) => make("tr", {}, runCell(run), makeCells(item)));
  return [table(list, columns, rows), ...more(rows.length, sumOf(model.runs, (run) => run[list + "_in_all"]), what)];
}

// The cells of an item of each list.
const missCells = (miss) => [named(miss.unit, miss.target), cell(miss.why || "Not recorded; 'kiln explain' shows it."),
  cell((miss.end || "none in this trace") + (miss.cost_ms > 0 ? " in " + duration(miss.cost_ms) : ""))];
const cacheCells = (pass) => [cell(code(pass.system)), cell(kindName(pass.kind)), cell(pass.text), time(pass.ms)];
const skippedCells = (entry) => [named(entry.path, entry.system), cell(kindName(entry.state)), cell(entry.why)];
const problemCells = (problem) => [cell(kindName(problem.kind)), cell(code(problem.unit)), cell(problem.message),
  time(problem.at_ms)];

function findingItem(finding) {
  const severity = finding.severity.toLowerCase();
  const where = (finding.operation && " in " + finding.operation) + (finding.stage && ", stage " + finding.stage);
  return make("li", {}, make("span", { class: "chip severity " + severity }, severity), " ", make("b", {}, finding.rule),
    where, make("p", {}, finding.text), note("Fix: " + finding.advice));
}

function auditArticle(run) {
  const shown = run.findings.slice(0, MAX_ROWS);
  return make("article", { class: "audit" }, make("h3", {}, label(run), " " + run.process),
    shown.length === 0 ? make("p", { class: "clean" }, "No findings." + (run.verdict === "inconclusive" ? " It is inconclusive: evidence is missing." : "")) : [],
    make("ul", { class: "findings" }, shown.map(findingItem)),
    more(shown.length, run.findings_in_all, "findings"),
    make("dl", { class: "answers" },
      make("dt", {}, "What makes it behave like CPU code?"), make("dd", {}, run.cause),
      make("dt", {}, "What is the smallest change that moves it back?"), make("dd", {}, run.change)));
}

function traceRow(run) {
  let events = String(run.events);
  if (run.dropped_events) events += `; ${run.dropped_events} later events are missing because the trace was full`;
  if (run.unknown_events) events += `; ${run.unknown_events} of unknown kinds`;
  return make("tr", {}, runCell(run), cell(code(run.file)), cell(code(run.command)), cell(run.date), cell(events));
}

function lead() {
  const text = `${counted(model.runs.length, "run", "runs")} of ${counted(model.programs.length, "program", "programs")}. `;
  const longest = model.waits[0];
  if (!longest) return text + "No thread was blocked.";
  const run = model.runs[longest.run];
  return text + `A thread was blocked for up to ${duration(longest.ms)}: ${longest.who} in the ${run.label} run of ` +
    `${run.process}${longest.unit ? ", on " + longest.unit : ""}.`;
}

document.title = "kiln report: " + model.programs.slice(0, 3).map((program) => program.name).join(", ");
document.querySelector(".lead").textContent = lead();
fill("programs", model.programs.map(programSection));
fill("waits", waitTable());
fill("timeline", legend(), model.runs.map(timeline));
fill("tiers", table("tiers", ["run", "cache hits by tier, and compiles"], model.runs.map(tierRow)));
fill("units", model.programs.flatMap(unitTable));
fill("misses", tableOfAll("misses", "misses", ["run", "unit", "cause", "result"], missCells,
  "None: every requested unit was found."));
fill("systems",
  tableOfAll("caches", "fills and publications", ["run", "system", "event", "entries", "time"], cacheCells, "None in these traces."),
  tableOfAll("skipped_entries", "entries", ["run", "entry", "state", "cause"], skippedCells, "No entry was left out."));
fill("audit", model.runs.map(auditArticle));
fill("troubles", tableOfAll("troubles", "problems", ["run", "event", "unit", "message", "at"], problemCells,
  "None in these traces."));
fill("traces", table("traces", ["run", "file", "command", "date", "events"], model.runs.map(traceRow)));
document.documentElement.dataset.ready = String(document.querySelectorAll(".mark").length);
