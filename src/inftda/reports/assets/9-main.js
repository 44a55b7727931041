/* Tables with one axis get a plain table for each level; then: start. */

class Plain {
  constructor(model, root) {
    this.model = model;
    this.root = root;
    this.limit = PAGE_ROWS;
    const { levels } = model.header;
    this.select = h('select', { class: 'field', id: 'level', onchange: () => { this.limit = PAGE_ROWS; this.show(); } },
      levels.map((level, i) => h('option', { value: i }, level.name)));
    this.input = h('input', { class: 'field', type: 'search', id: 'search', placeholder: 'Code or name',
      oninput: () => { this.limit = PAGE_ROWS; this.show(); } });
    this.table = h('div', {});
    root.replaceChildren(h('div', { class: 'bar' },
      h('label', {}, h('span', {}, 'Level'), this.select), h('label', {}, h('span', {}, 'Find'), this.input),
      h('span', { class: 'push' }),
      h('button', { class: 'action', type: 'button', id: 'download', onclick: () => this.csv() }, 'Download CSV')),
    this.table);
    this.show();
  }

  get level() { return this.model.header.levels[Number(this.select.value)]; }

  label(axis, area) {
    return this.model.axes[axis].label(this.level.depths[axis], area);
  }

  /* Rows of the level that hold the text looked for, as [areas..., value, truth]. */
  get rows() {
    const { axes, rows } = this.level;
    const wanted = folded(this.input.value.trim());
    if (!wanted) return rows;
    return rows.filter((row) => axes.some((axis, i) => {
      const code = this.model.axes[axis].code(this.level.depths[axis], row[i]);
      return folded(this.label(axis, row[i])).includes(wanted) || folded(code).includes(wanted);
    }));
  }

  /* Area of a row on every axis. */
  areas(row) {
    const areas = [];
    this.level.axes.forEach((axis, i) => { areas[axis] = row[i]; });
    return areas;
  }

  show() {
    const { axes, depths, n } = this.level;
    const { model } = this;
    const { header, isConfidential } = model;
    const found = this.rows;
    const largest = found.slice(0, this.limit).reduce((most, row) => Math.max(most, Math.abs(row[axes.length])), 1);
    const head = [...axes.map((axis) => headCell(model.axes[axis].title, 'text')),
      headCell(isConfidential ? 'Released' : header.words.unit),
      isConfidential ? headCell('True') : [headCell('Error (95\u00a0%)'), headCell('Noise', 'noise')],
      unseenHead('Bar', 'wide')];
    const rows = found.map((row) => () => {
      const value = row[axes.length];
      return h('tr', {}, axes.map((axis, i) => h('td', { class: 'text' }, this.label(axis, row[i]))),
        h('td', {}, whole(value)),
        isConfidential ? h('td', {}, whole(row[axes.length + 1]))
          : [h('td', {}, worthChip(model, depths, value, this.areas(row))), noiseCell(model, depths, value)],
        barCell(value, largest));
    });
    const kept = this.level.rows.length < n ? ` This page holds the largest ${whole(this.level.rows.length)} of ${whole(n)}; the release has all.` : '';
    this.table.replaceChildren(...[
      warningOf(model, depths),
      h('p', { class: 'note' }, `${whole(found.length)} cells.${kept}`),
    ].filter(Boolean), ...pagedTable(head, rows, this.limit, () => { this.limit += 2 * PAGE_ROWS; this.show(); }));
  }

  csv() {
    const { axes, depths } = this.level;
    const { model } = this;
    const head = axes.map((axis) => model.axes[axis].name);
    head.push('flow', ...(model.isConfidential ? ['true', 'notice'] : ['error_95']));
    const lines = [csvRow(head)];
    for (const row of this.rows) {
      const value = row[axes.length];
      lines.push(csvRow([...axes.map((axis, i) => model.axes[axis].code(depths[axis], row[i])), value,
        ...(model.isConfidential ? [row[axes.length + 1], 'CONFIDENTIAL'] : [model.error(depths, value, this.areas(row))?.p95 ?? ''])]));
    }
    download((model.isConfidential ? 'CONFIDENTIAL-' : '') + 'cells.csv', lines);
  }
}

async function start() {
  const root = document.getElementById('explorer');
  const began = performance.now();
  try {
    const { header, section } = await unpack(document.getElementById('packed').textContent);
    spreadsheet.keepsFormulas = Boolean(header.formulas);
    const model = new Model(header, section);
    if (header.flows) new Explorer(model, root);
    else new Plain(model, root);
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
    document.documentElement.dataset.unpacked = String(Math.round(performance.now() - began));
  } catch (problem) {
    root.replaceChildren(h('p', { class: 'note' }, 'The numbers cannot be shown: ' + problem.message));
    throw problem;
  }
}

start();
