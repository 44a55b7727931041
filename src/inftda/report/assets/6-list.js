/* The largest flows of a view, with what each is worth. */

const PAGE_ROWS = 50;

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
    const shown = order.slice(0, this.rows);
    const largest = Math.max(1, ...shown.map((i) => Math.abs(flows.value[i])));
    const words = model.header.words;
    const isSecret = model.isConfidential;
    const head = h('tr', {},
      h('th', { scope: 'col', class: 'rank' }, '#'),
      h('th', { scope: 'col', class: 'text' }, words.row), h('th', { scope: 'col', class: 'text' }, words.column),
      h('th', { scope: 'col' }, isSecret ? 'Released' : words.unit),
      isSecret ? [h('th', { scope: 'col' }, 'True'), h('th', { scope: 'col' }, 'Error')]
        : h('th', { scope: 'col' }, 'Error (95\u00a0%)'),
      h('th', { scope: 'col' }, h('span', { class: 'unseen' }, 'Zoom')),
      h('th', { scope: 'col', class: 'wide' }, h('span', { class: 'unseen' }, 'Bar')));
    const body = shown.map((i, rank) => this.row(view, flows, i, rank, largest));
    const left = order.length - shown.length;
    this.node.replaceChildren(...[
      h('p', { class: 'note' }, order.length
        ? `${whole(order.length)} pairs in view.` : 'There is nothing to show here: no flow was published.'),
      h('div', { class: 'scroll' }, h('table', { class: 'flows' }, h('thead', {}, head), h('tbody', {}, body))),
      left > 0 ? h('button', { class: 'action more', type: 'button', onclick: () => {
        this.rows += PAGE_ROWS * 2;
        this.show(view, flows);
      } }, `Show ${whole(Math.min(left, PAGE_ROWS * 2))} more of ${whole(left)}`) : null,
    ].filter(Boolean));
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
    const width = 100 * Math.abs(value) / largest;
    return h('tr', {},
      h('td', { class: 'rank muted' }, whole(rank + 1)), ends.map(name),
      h('td', {}, whole(value)),
      model.isConfidential ? this.truth(value, flows.truth[i]) : h('td', {}, this.chip(view, value, [flows.row[i], flows.column[i]])),
      h('td', { class: 'zoom' }, h('button', {
        class: 'link', type: 'button', 'aria-label': `Zoom in on both ends of number ${rank + 1}`,
        onclick: () => explorer.go({ row: ends[0].area, column: ends[1].area }),
      }, 'zoom')),
      h('td', { class: 'wide' }, s('svg', { 'aria-hidden': 'true' },
        s('rect', { width: width.toFixed(2) + '%', height: '100%', rx: 2 }))));
  }

  chip(view, value, areas) {
    const { model } = this.explorer;
    const error = model.error(view.levels, value, areas);
    if (!error) return h('span', { class: 'muted' }, 'unknown');
    const grade = model.grade(view.levels, value, areas);
    const isRough = model.isAcross(view.levels) && error.low === undefined;
    const chip = h('span', { class: 'chip r' + grade, title: GRADES[grade - 1].label }, '±' + whole(error.p95));
    return isRough ? [chip, h('span', { class: 'muted', title: 'A sum across the levels at which noise was added' }, ' rough')] : chip;
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
