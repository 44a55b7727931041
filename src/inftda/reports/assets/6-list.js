/* Numbers in lists, with what each is worth: the largest flows of a view, totals of every axis. */

const PAGE_ROWS = 50;

const range = (low, high) => `${whole(low)}–${whole(high)}`;

/* How far off a number is, in a cell of a table. */
function worthChip(model, levels, value, areas) {
  if (model.isUnmeasured(levels)) {
    return h('span', { class: 'chip r5', title: 'A sum across the levels at which noise was added; nothing tells how far off it is' }, 'not measured');
  }
  const error = model.error(levels, value, areas);
  if (!error) return h('span', { class: 'muted' }, 'unknown');
  const grade = model.grade(levels, value, areas);
  if (error.low !== undefined && !error.isMeasured) {
    return h('span', { class: 'chip r' + grade, title: GRADES[grade - 1].label }, range(error.low, error.high));
  }
  if (error.isMeasured) {
    return h('span', { class: 'chip r' + grade, title: `measured: between ${whole(error.low)} and ${whole(error.high)} (95 %)` }, '±' + whole(error.p95));
  }
  const chip = h('span', { class: 'chip r' + grade, title: GRADES[grade - 1].label }, '±' + whole(error.p95));
  if (!model.isAcross(levels)) return chip;
  return [chip, h('span', { class: 'muted', title: 'A sum across the levels at which noise was added' }, ' rough')];
}

/* How many of the numbers of this size are noise; nothing where that is not known. */
function noiseCell(model, levels, value) {
  const share = model.noiseShare(levels, value);
  if (share === null) return h('td', { class: 'noise muted' }, '');
  return h('td', { class: 'noise' + (share >= 0.5 ? ' wrong' : ' muted') }, share < 0.01 ? '–' : percent(share));
}

const barCell = (value, largest) => h('td', { class: 'wide' }, s('svg', { 'aria-hidden': 'true' },
  s('rect', { width: (100 * Math.abs(value) / largest).toFixed(2) + '%', height: '100%', rx: 2 })));

const headCell = (text, kind = null) => h('th', { scope: 'col', class: kind }, text);

const unseenHead = (text, kind = null) => headCell(h('span', { class: 'unseen' }, text), kind);

/* Said of numbers that should not be used, wherever they are shown. */
function warningOf(model, levels) {
  const why = model.isNoise(levels) && !model.isEstimated ? `most of its ${model.header.words.cells} are noise.`
    : model.isUnmeasured(levels) ? 'its numbers are sums across the levels at which noise was added, and were not measured.' : '';
  return why ? h('p', { class: 'warning', role: 'note' }, h('strong', {}, 'Do not use this level:'), ' ' + why) : null;
}

/* A table of which some rows are shown, and a button for more. */
function pagedTable(head, rows, limit, more) {
  const left = rows.length - limit;
  return [
    h('div', { class: 'scroll' }, h('table', { class: 'flows' }, h('thead', {}, h('tr', {}, head)),
      h('tbody', {}, rows.slice(0, limit).map((row, rank) => row(rank))))),
    left > 0 ? h('button', { class: 'action more', type: 'button', onclick: more },
      `Show ${whole(Math.min(left, 2 * PAGE_ROWS))} more of ${whole(left)}`) : null,
  ].filter(Boolean);
}

class List {
  constructor(explorer) {
    this.explorer = explorer;
    this.node = h('div', {});
    this.rows = PAGE_ROWS;
  }

  show(view, flows) {
    if (this.view !== view) this.rows = PAGE_ROWS;
    this.view = view;
    const { model } = this.explorer;
    const order = this.explorer.order(flows);
    const largest = order.slice(0, this.rows).reduce((most, i) => Math.max(most, Math.abs(flows.value[i])), 1);
    const words = model.header.words;
    const isSecret = model.isConfidential;
    const head = [headCell('#', 'rank'), headCell(words.row, 'text'), headCell(words.column, 'text'),
      headCell(isSecret ? 'Released' : words.unit),
      isSecret ? [headCell('True'), headCell('Error')] : [headCell(model.hasIntervals(view.levels) ? 'True number (95\u00a0%)' : 'Error (95\u00a0%)'), model.isEstimated ? null : headCell('Noise', 'noise')],
      unseenHead('Zoom'), unseenHead('Bar', 'wide')];
    const rows = order.map((i) => (rank) => this.row(view, flows, i, rank, largest));
    this.node.replaceChildren(
      h('p', { class: 'note' }, order.length ? this.summary(view, flows, order)
        : 'There is nothing to show here: no flow was published.'),
      ...pagedTable(head, rows, this.rows, () => {
        this.rows += PAGE_ROWS * 2;
        this.show(view, flows);
      }));
  }

  /* How many there are, and how many of them are noise, before any is read. */
  summary(view, flows, order) {
    const { model } = this.explorer;
    const { cells } = model.header.words;
    const counted = `${whole(order.length)} ${cells} in view.`;
    if (model.isConfidential) return counted;
    if (model.isEstimated) return `${counted} Estimates by a model: they are no list of flows that exist.`;
    let noise = 0;
    for (const i of order) {
      const share = model.noiseShare(view.levels, flows.value[i]);
      if (share === null) return counted;
      noise += share;
    }
    if (noise < 0.01 * order.length) return counted;
    return `${counted} About ${percent(noise / order.length)} of them are noise: their true number is nothing, or next to it. The column Noise says how many of those of its size are.`;
  }

  row(view, flows, i, rank, largest) {
    const { explorer } = this;
    const { model } = explorer;
    const ends = [
      { key: 'row', area: { level: view.rowLevel, index: flows.row[i] } },
      { key: 'column', area: { level: view.columnLevel, index: flows.column[i] } },
    ];
    const name = ({ key, area }, number) => {
      const label = model.axes[number].label(area.level, area.index);
      const code = model.axes[number].code(area.level, area.index);
      return h('td', { class: 'text' }, h('button', {
        class: 'link', type: 'button', title: label === code ? null : code,
        onclick: () => explorer.go({ [key]: area }),
      }, label));
    };
    const value = flows.value[i];
    return h('tr', {},
      h('td', { class: 'rank muted' }, whole(rank + 1)), ends.map(name),
      h('td', {}, whole(value)),
      model.isConfidential ? this.truth(value, flows.truth[i])
        : [h('td', {}, worthChip(model, view.levels, value, view.areas(flows.row[i], flows.column[i]))),
          model.isEstimated ? null : noiseCell(model, view.levels, value)],
      h('td', { class: 'zoom' }, h('button', {
        class: 'link', type: 'button', 'aria-label': `Zoom in on both ends of number ${rank + 1}`,
        onclick: () => explorer.go({ row: ends[0].area, column: ends[1].area }),
      }, 'zoom')),
      barCell(value, largest));
  }

  truth(value, truth) {
    const isWrong = (value === 0) !== (truth === 0);
    const error = value - truth;
    return [
      h('td', { class: isWrong ? 'wrong' : null }, whole(truth)),
      h('td', { class: isWrong ? 'wrong' : null }, (error > 0 ? '+' : '') + whole(error)),
    ];
  }
}

/* Totals of all areas of one axis, whatever is looked at. */
class Totals {
  constructor(explorer) {
    this.explorer = explorer;
    this.node = h('div', {});
    this.rows = PAGE_ROWS;
    const { axes } = explorer.model;
    this.select = h('select', { class: 'field', id: 'totals-of', onchange: () => {
      this.rows = PAGE_ROWS;
      this.show();
    } }, axes.map((axis, number) => h('optgroup', { label: axis.title },
      axis.levels.slice(1).map((level, i) => h('option', { value: `${number}.${i + 1}` },
        `${axis.title}: ${level.name} (${whole(level.codes.length)})`)))));
  }

  get chosen() { return this.select.value.split('.').map(Number); }

  show() {
    const { model } = this.explorer;
    const [number, level] = this.chosen;
    const axis = model.axes[number];
    const levels = model.axes.map((_, i) => (i === number ? level : 0));
    const { value, truth } = model.totals(number, level);
    const order = Array.from(value.keys()).sort((a, b) => value[b] - value[a] || a - b);
    const largest = order.length ? Math.max(1, value[order[0]]) : 1;
    const isSecret = model.isConfidential;
    const head = [headCell('#', 'rank'), headCell(axis.levels[level].name, 'text'),
      headCell(isSecret ? 'Released' : model.header.words.unit),
      isSecret ? headCell('True') : [headCell('Error (95\u00a0%)', 'slack'), headCell('True number (95\u00a0%)')],
      unseenHead('Bar', 'wide')];
    const rows = order.map((index) => (rank) => {
      const areas = model.axes.map((_, i) => (i === number ? index : 0));
      return h('tr', {}, h('td', { class: 'rank muted' }, whole(rank + 1)),
        h('td', { class: 'text' }, axis.label(level, index)), h('td', {}, whole(value[index])),
        isSecret ? h('td', {}, whole(truth[index]))
          : [h('td', { class: 'slack' }, worthChip(model, levels, value[index], areas)), h('td', { class: 'interval muted' }, this.interval(levels, value[index], areas))],
        barCell(value[index], largest));
    });
    const warning = isSecret ? null : warningOf(model, levels);
    this.node.replaceChildren(
      h('div', { class: 'bar' }, h('label', {}, h('span', {}, 'Totals of'), this.select)),
      ...(warning ? [warning] : []),
      h('p', { class: 'note' }, isSecret ? '' : this.kind(levels)),
      ...pagedTable(head, rows, this.rows, () => { this.rows += PAGE_ROWS * 2; this.show(); }));
  }

  /* Where these totals come from, and so what they are worth. */
  kind(levels) {
    const { model } = this.explorer;
    const whole = 'Totals of the whole table, whatever is chosen above. ';
    if (model.header.totals[levels.join()]) return whole + 'They were measured by themselves, so that their intervals are as good as stated.';
    if (model.isAcross(levels)) return whole + 'These are sums across the levels at which noise was added: their errors are rough.';
    return whole + 'Noise was added to these totals themselves.';
  }

  interval(levels, value, areas) {
    const { model } = this.explorer;
    const error = model.error(levels, value, areas);
    if (!error) return '';
    const low = error.low ?? Math.max(0, value - error.p95);
    return range(low, error.high ?? value + error.p95);
  }

  csv() {
    const { model } = this.explorer;
    const [number, level] = this.chosen;
    const axis = model.axes[number];
    const levels = model.axes.map((_, i) => (i === number ? level : 0));
    const { value, truth } = model.totals(number, level);
    const named = Boolean(axis.levels[level].names);
    const lines = [csvRow(['level', axis.name, ...(named ? ['name'] : []), 'flow',
      ...(model.isConfidential ? ['true', 'notice'] : ['error_95'])])];
    value.forEach((total, index) => {
      const areas = model.axes.map((_, i) => (i === number ? index : 0));
      const error = model.error(levels, total, areas);
      lines.push(csvRow([axis.levels[level].name, axis.code(level, index), ...(named ? [axis.label(level, index)] : []), total,
        ...(model.isConfidential ? [truth[index], 'CONFIDENTIAL'] : [error?.p95 ?? ''])]));
    });
    download(`${model.isConfidential ? 'CONFIDENTIAL-' : ''}totals-${axis.name.replace(/\W/g, '')}-${level}.csv`, lines);
  }
}
