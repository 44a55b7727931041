/* Panels to choose an end, a filter, and the axes that are laid out. */

import { h, whole } from './tools.mjs';

/* Areas in a list to choose from, at most. */
const MOST_LISTED = 200;

/* One panel for each axis: where we are (breadcrumb), find an area, and the level shown. */

export class End {
  constructor(explorer, number) {
    this.explorer = explorer;
    this.number = number;
    this.axis = explorer.model.axes[number];
    this.focusKey = number === 0 ? 'row' : 'column';
    this.levelKey = number === 0 ? 'rowLevel' : 'columnLevel';
    this.crumbs = h('ol', { class: 'crumbs' });
    this.select = h('select', { class: 'field', onchange: () => {
      explorer.go({ [this.levelKey]: Number(this.select.value) });
    } });
    this.finder = new Finder(this.axis, (area) => explorer.go({ [this.focusKey]: area }));
    this.node = h('section', { class: 'end', 'aria-label': this.axis.title },
      h('nav', { 'aria-label': this.axis.title + ': where you are' }, h('h3', {}, this.axis.title), this.crumbs),
      h('div', { class: 'row' }, this.finder.node,
        h('label', {}, h('span', {}, 'Shown by'), this.select)));
  }

  show(view) {
    const focus = view[this.focusKey];
    const path = this.axis.path(focus.level, focus.index);
    this.crumbs.replaceChildren(...path.map(({ level, index }) => {
      const label = this.axis.label(level, index);
      if (level === focus.level) return h('li', {}, h('span', { 'aria-current': 'location' }, label));
      return h('li', {}, h('button', { class: 'link', type: 'button', onclick: () => {
        this.explorer.go({ [this.focusKey]: { level, index } });
      } }, label));
    }));
    const options = [];
    for (let level = Math.max(focus.level, this.axis.start.level); level <= this.axis.depth; level += 1) {
      const [first, last] = this.axis.inside(focus, level);
      if (level === focus.level && this.axis.depth > level) {
        options.push(h('option', { value: level }, level === 0 ? 'all together' : 'itself'));
      } else {
        options.push(h('option', { value: level }, `${this.axis.levels[level].name} (${whole(last - first)})`));
      }
    }
    this.select.replaceChildren(...options);
    this.select.value = String(view[this.levelKey]);
    this.select.disabled = options.length < 2;
    this.finder.clear();
  }
}

/* Search an area by code or name: a combobox that arrow keys, Enter and Escape work on. */
export class Finder {
  constructor(axis, choose) {
    this.axis = axis;
    this.choose = choose;
    this.active = -1;
    this.results = [];
    const id = 'found-' + axis.name.replace(/\W/g, '') + '-' + Finder.made++;
    this.list = h('ul', { class: 'found hidden', role: 'listbox', id, 'aria-label': 'Areas found' });
    this.input = h('input', {
      class: 'field', type: 'search', role: 'combobox', autocomplete: 'off', spellcheck: 'false',
      'aria-autocomplete': 'list', 'aria-expanded': 'false', 'aria-controls': id,
      placeholder: 'Code or name',
      oninput: () => this.find(), onkeydown: (event) => this.key(event),
      onblur: () => this.close(), onfocus: () => this.find(),
    });
    this.node = h('label', { class: 'finder' }, h('span', {}, 'Find an area'), this.input, this.list);
  }

  clear() { this.input.value = ''; this.close(); }

  close() {
    this.list.classList.add('hidden');
    this.input.setAttribute('aria-expanded', 'false');
    this.input.removeAttribute('aria-activedescendant');
    this.active = -1;
  }

  find() {
    if (!this.input.value.trim()) { this.close(); return; }
    this.results = this.axis.search(this.input.value, 30);
    const items = this.results.map((area, i) => this.item(area, i));
    if (!items.length) items.push(h('li', { class: 'none' }, 'No area has this in its code or name'));
    this.list.replaceChildren(...items);
    this.list.classList.remove('hidden');
    this.input.setAttribute('aria-expanded', 'true');
    this.mark(this.results.length ? 0 : -1);
  }

  item({ level, index }, i) {
    const label = this.axis.label(level, index);
    const code = this.axis.code(level, index);
    const above = this.axis.path(level, index).slice(1, -1).reverse()
      .map((area) => this.axis.label(area.level, area.index));
    const facts = [this.axis.levels[level].name, label === code ? null : code, ...above].filter(Boolean);
    return h('li', {
      role: 'option', id: this.list.id + '-' + i, 'aria-selected': 'false',
      onmousedown: (event) => { event.preventDefault(); this.take(i); },
    }, label, h('small', {}, facts.join(' · ')));
  }

  mark(active) {
    this.active = active;
    [...this.list.children].forEach((item, i) => {
      if (item.getAttribute('role') === 'option') item.setAttribute('aria-selected', String(i === active));
    });
    if (active < 0) { this.input.removeAttribute('aria-activedescendant'); return; }
    this.input.setAttribute('aria-activedescendant', this.list.children[active].id);
    this.list.children[active].scrollIntoView({ block: 'nearest' });
  }

  key(event) {
    const n = this.results.length;
    if (event.key === 'Escape' && this.input.value) { event.stopPropagation(); this.clear(); return; }
    if (this.list.classList.contains('hidden') || !n) return;
    if (event.key === 'ArrowDown') this.mark((this.active + 1) % n);
    else if (event.key === 'ArrowUp') this.mark((this.active + n - 1) % n);
    else if (event.key === 'Enter') this.take(this.active);
    else return;
    event.preventDefault();
  }

  take(i) {
    if (i < 0) return;
    const area = this.results[i];
    this.clear();
    this.choose(area);
  }
}

Finder.made = 0;

/* An additional dimension: which of its areas is looked at, with their totals; all of them at first. */
export class Filter {
  constructor(explorer, number) {
    this.number = number;
    this.axis = explorer.model.axes[number];
    this.choose = (area) => explorer.go({
      further: explorer.view.further.map((focus, i) => (i === number - 2 ? area : focus)),
    });
    this.select = h('select', { class: 'field', id: 'filter-' + number, onchange: () => {
      const [level, index] = this.select.value.split('.').map(Number);
      this.choose({ level, index });
    } });
    /* Finer areas are too many for a list to choose from, and are searched for. */
    this.listed = this.axis.levels.findLastIndex(({ codes }) => codes.length <= MOST_LISTED);
    this.options = [this.axis.isEdition ? [] : h('option', { value: '0.0' }, 'all together'), this.axis.levels.slice(1, this.listed + 1).map((of, i) => {
      const totals = explorer.model.totals(number, i + 1).value;
      const options = this.axis.inOrder(i + 1, Array.from(totals.keys())).map((index) =>
        h('option', { value: `${i + 1}.${index}` }, `${this.axis.label(i + 1, index)} (${whole(totals[index])})`));
      return this.listed > 1 ? h('optgroup', { label: of.name }, options) : options;
    })].flat(2);
    this.other = h('option', { value: '' });
    const finder = this.listed < this.axis.depth ? new Finder(this.axis, this.choose).node : null;
    const label = h('label', {}, h('span', {}, this.axis.isEdition ? 'Edition' : `Only this ${this.axis.name}`), this.select);
    this.node = this.axis.isEdition ? label
      : h('section', { class: 'end small', 'aria-label': this.axis.title }, h('div', { class: 'row' }, label, finder));
  }

  show(view) {
    const { level, index } = view.further[this.number - 2];
    const isListed = level <= this.listed;
    this.other.textContent = isListed ? '' : this.axis.label(level, index);
    this.other.value = `${level}.${index}`;
    this.select.replaceChildren(...this.options, ...(isListed ? [] : [this.other]));
    this.select.value = `${level}.${index}`;
  }
}

/* With more than two axes: which are the rows and which the columns. */
export class Pair {
  constructor(explorer) {
    const { model } = explorer;
    const select = (place, label) => h('label', {}, h('span', {}, label), h('select', {
      class: 'field', id: place ? 'columns' : 'rows', onchange: (event) => {
        const chosen = Number(event.target.value);
        const pair = [...model.pair];
        /* Whoever chooses the other one turns the table. */
        if (pair[1 - place] === chosen) pair.reverse();
        else pair[place] = chosen;
        explorer.layOut(pair);
      },
    }, model.known.map(({ name }, number) =>
      h('option', { value: number, selected: model.pair[place] === number }, name))));
    this.node = h('section', { class: 'end small', 'aria-label': 'Rows and columns' },
      h('div', { class: 'row' }, select(0, 'Rows'), select(1, 'Columns')));
  }
}
