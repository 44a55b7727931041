/* Numbers in a list, with what each is worth: the largest flows of a view, or totals of an axis. */

const PAGE_ROWS = 50;
const TOP_FLOWS = 10;

/* How far off a number is, in a cell of a table. */
function worthChip(model, levels, value, areas) {
  const error = model.error(levels, value, areas);
  if (!error) return h('span', { class: 'muted' }, 'unknown');
  const grade = model.grade(levels, value, areas);
  const text = `${whole(error.low)}–${whole(error.high)}`;
  const { name, label } = GRADES[grade - 1];
  const chip = [h('span', { class: 'graded', title: label }, h('span', { class: 'chip r' + grade }, text), h('span', { class: 'grade' }, name))];
  const unlisted = model.unlisted(levels, value, areas);
  if (unlisted) chip.push(h('span', { class: 'muted', title: 'In flows too small to be listed' }, ` ${whole(unlisted)} unlisted`));
  return chip;
}

/* Said above numbers of which some should not be used, or which have no intervals. */
function warningOf(model, levels) {
  const advice = model.adviceOf(levels);
  return advice ? h('p', { class: 'use', role: 'note' }, advice) : null;
}

const headCell = (text, kind = null) => h('th', { scope: 'col', class: kind }, text);
const unseenHead = (text, kind = null) => headCell(h('span', { class: 'unseen' }, text), kind);

/* A list of numbers: levels on each axis, the axes that are named, and for each row its areas, its
   value and, on the confidential page, the true one. */
class List {
  constructor(explorer) {
    this.explorer = explorer;
    this.model = explorer.model;
    this.table = h('div', {});
    this.node = h('div', {}, this.table);
    this.limit = PAGE_ROWS;
  }

  /* The flows of a view, as the explorer orders them. */
  rows(view, flows) {
    const { words } = this.model;
    return {
      levels: view.levels, named: [0, 1], titles: [words.row, words.column], file: view.fileName,
      rows: this.explorer.order(flows).map((i) => ({
        areas: view.areas(flows.row[i], flows.column[i]), value: flows.value[i], truth: flows.truth?.[i],
      })),
    };
  }

  show(view, flows) {
    if (this.view !== view) this.limit = PAGE_ROWS;
    this.view = view;
    const found = this.rows(view, flows);
    const rows = found.rows.filter(({ value, areas }) => !this.leavesOut(found.levels, value, areas));
    this.listed = { ...found, rows, leftOut: found.rows.length - rows.length };
    this.draw();
  }

  /* The largest flows are no list of numbers that may be zero. */
  leavesOut(levels, value, areas) { return this.model.mayBeZero(levels, value, areas); }

  draw() {
    const { model, listed } = this;
    const { levels, rows, titles } = listed;
    const left = rows.length - this.limit;
    const shown = rows.slice(0, this.limit);
    const largest = shown.reduce((most, { value }) => Math.max(most, Math.abs(value)), 1);
    const isSecret = model.isConfidential;
    const head = [headCell('#', 'rank'), titles.map((title) => headCell(title, 'text')),
      headCell(isSecret ? 'Released' : model.words.unit),
      isSecret ? [headCell('True'), headCell('Error')]
        : model.hasIntervals(levels) ? headCell('True number (95\u00a0%)') : null,
      unseenHead('Bar', 'wide')];
    this.table.replaceChildren(...[
      this.note(),
      h('div', { class: 'scroll' }, h('table', { class: 'flows' }, h('thead', {}, h('tr', {}, head)),
        h('tbody', {}, shown.map((row, rank) => this.row(row, rank, largest))))),
      left > 0 ? h('button', { class: 'action more', type: 'button', onclick: () => { this.limit += 2 * PAGE_ROWS; this.draw(); } },
        `Show ${whole(Math.min(left, 2 * PAGE_ROWS))} more of ${whole(left)}`) : null,
    ].flat().filter(Boolean));
  }

  row({ areas, value, truth }, rank, largest) {
    const { model } = this;
    const { levels, named } = this.listed;
    return h('tr', {},
      h('td', { class: 'rank muted' }, whole(rank + 1)),
      named.map((number) => h('td', { class: 'text' }, this.name(number, levels[number], areas[number]))),
      h('td', {}, whole(value)),
      model.isConfidential ? this.truth(value, truth)
        : model.hasIntervals(levels) ? h('td', {}, worthChip(model, levels, value, areas)) : null,
      h('td', { class: 'wide' }, s('svg', { 'aria-hidden': 'true' },
        s('rect', { width: (100 * Math.abs(value) / largest).toFixed(2) + '%', height: '100%', rx: 2 }))));
  }

  /* An area that one can zoom into. */
  name(number, level, index) {
    const axis = this.model.axes[number];
    const [label, code] = [axis.label(level, index), axis.code(level, index)];
    return h('button', {
      class: 'link', type: 'button', title: label === code ? null : code,
      onclick: () => this.explorer.go({ [number === 0 ? 'row' : 'column']: { level, index } }),
    }, label);
  }

  truth(value, truth) {
    const kind = (value === 0) !== (truth === 0) ? 'wrong' : null;
    const error = value - truth;
    return [h('td', { class: kind }, whole(truth)), h('td', { class: kind }, (error > 0 ? '+' : '') + whole(error))];
  }

  /* How many there are, before any is read. */
  note() {
    const { model } = this;
    const { rows, leftOut } = this.listed;
    const { cells } = model.words;
    let text = `${whole(rows.length)} ${cells} in view.`;
    if (!rows.length && !leftOut) text = 'There is nothing to show here: no flow was published.';
    else if (model.isEstimated) text += ' Estimates by a model: they are no list of flows that exist.';
    if (leftOut) text += ` ${whole(leftOut)} more may be zero (grade D) and are left out; the download has them.`;
    return h('p', { class: 'note' }, text);
  }

  /* Everything that is listed, not only the rows on the screen. */
  csv(view, flows) {
    const { model } = this;
    const { levels, named, rows, file } = this.rows(view, flows);
    const columns = named.map((number) => ({ number, axis: model.axes[number], level: levels[number] }));
    const hasEnds = model.hasIntervals(levels);
    const isNamed = ({ axis, level }) => Boolean(axis.levels[level].names);
    const head = [
      ...columns.flatMap((one) => [`${one.axis.name}_level`, one.axis.name, ...(isNamed(one) ? [`${one.axis.name}_name`] : [])]),
      model.isEstimated ? 'estimate' : 'flow',
      ...(model.isConfidential ? ['true', 'notice'] : hasEnds ? ['low', 'high', 'grade'] : [])];
    const lines = rows.map(({ areas, value, truth }) => {
      const error = model.isConfidential ? null : model.error(levels, value, areas);
      const grade = error && GRADES[model.grade(levels, value, areas) - 1].name;
      return [
        ...columns.flatMap((one) => [one.axis.levels[one.level].name, one.axis.code(one.level, areas[one.number]),
          ...(isNamed(one) ? [one.axis.nameOf(one.level, areas[one.number])] : [])]),
        value,
        ...(model.isConfidential ? [truth, 'CONFIDENTIAL'] : hasEnds ? [error?.low, error?.high, grade] : [])];
    });
    download(`${model.isConfidential ? 'CONFIDENTIAL-' : ''}${file}.csv`, [head, ...lines].map(csvRow));
  }
}

/* A few of the largest flows, beside a map or a matrix. */
class Top {
  constructor(explorer) {
    this.explorer = explorer;
    this.title = h('h3', {});
    this.list = h('ol', { class: 'top' });
    this.node = h('div', {}, this.title, this.list);
  }

  /* The first flows of those that are numbered, which are all within areas or all between them. */
  show(view, flows, numbers, isWithin) {
    const { explorer, explorer: { model } } = this;
    this.title.textContent = `Largest flows ${isWithin ? 'within' : 'between'} areas`;
    this.list.replaceChildren(...numbers.slice(0, TOP_FLOWS).map((i) => {
      const ends = [[view.rowLevel, flows.row[i]], [view.columnLevel, flows.column[i]]].map(([level, index]) => ({ level, index }));
      const grade = model.isConfidential ? null : model.grade(view.levels, flows.value[i], view.areas(flows.row[i], flows.column[i]));
      const labels = ends.map(({ level, index }, number) => model.axes[number].label(level, index));
      return h('li', {}, h('button', { class: 'link', type: 'button', onclick: () =>
        explorer.say(...ends, { value: flows.value[i], truth: flows.truth?.[i] ?? 0 }) }, isWithin ? labels[0] : labels.join(' → ')),
      h('span', {}, whole(flows.value[i]), grade ? h('span', { class: 'grade', title: GRADES[grade - 1].label }, GRADES[grade - 1].name) : null));
    }));
  }

  /* Those of a view between fine areas, or within them if there are no others. */
  showFine(view) {
    const { explorer, explorer: { model } } = this;
    const [rowLevel, columnLevel] = model.axes.map(fineLevel);
    const fine = view.with({ rowLevel: Math.max(view.rowLevel, rowLevel), columnLevel: Math.max(view.columnLevel, columnLevel) });
    const flows = model.flows(fine);
    const isWithin = (i) => model.isShared && fine.rowLevel === fine.columnLevel && flows.row[i] === flows.column[i];
    const sure = explorer.order(flows).filter((i) => !model.mayBeZero(fine.levels, flows.value[i], fine.areas(flows.row[i], flows.column[i])));
    const between = sure.filter((i) => !isWithin(i));
    this.show(fine, flows, between.length ? between : sure, !between.length);
    this.node.classList.toggle('hidden', !sure.length);
  }
}

/* Totals of all areas of one axis, whatever is looked at; of a table with one axis, all there is. */
class Totals extends List {
  constructor(explorer) {
    super(explorer);
    const axes = this.model.axes.slice(0, this.model.header.axes.length);
    const again = () => { this.limit = PAGE_ROWS; this.show(this.view); };
    this.select = h('select', { class: 'field', id: 'totals-of', onchange: again },
      axes.map((axis, number) => h('optgroup', { label: axis.title },
        axis.levels.slice(1).map((level, i) => h('option', { value: `${number}.${i + 1}` },
          `${axis.title}: ${level.name} (${whole(level.codes.length)})`)))));
    this.input = h('input', { class: 'field', type: 'search', id: 'search', placeholder: 'Code or name', oninput: again });
    this.node.prepend(h('div', { class: 'bar' }, h('label', {}, h('span', {}, 'Totals of'), this.select),
      h('label', {}, h('span', {}, 'Find'), this.input)));
  }

  rows() {
    const [number, level] = this.select.value.split('.').map(Number);
    const { model } = this;
    const axis = model.axes[number];
    const at = (index) => model.axes.map((_, i) => (i === number ? index : 0));
    const { value, truth } = model.totals(number, level);
    const wanted = folded(this.input.value.trim());
    const order = Array.from(value.keys())
      .filter((i) => folded(`${axis.label(level, i)}\n${axis.code(level, i)}`).includes(wanted))
      .sort((a, b) => value[b] - value[a] || a - b);
    return {
      levels: at(level), named: [number], titles: [axis.levels[level].name],
      file: `totals-${axis.name.replace(/\W/g, '')}-${level}`,
      rows: order.map((i) => ({ areas: at(i), value: value[i], truth: truth?.[i] })),
    };
  }

  /* An area in a list of totals is not zoomed into: the list is the same for every view. */
  name(number, level, index) { return this.model.axes[number].label(level, index); }

  leavesOut() { return false; }

  /* Where these totals come from, and so what they are worth. */
  note() {
    const { model } = this;
    const { levels } = this.listed;
    if (model.isConfidential) return null;
    const what = model.isFlat ? '' : 'Totals of the whole table. ';
    const how = model.isMeasured(levels) ? 'They were measured separately, so that their intervals are as good as stated. Flows that are listed may add up to less: others are too small.'
      : model.isAcross(levels) ? 'These are sums across the levels at which noise was added; they were not measured themselves.'
        : 'Noise was added to these totals themselves.';
    return [warningOf(model, levels), h('p', { class: 'note' }, what + how)];
  }
}
