import assert from 'node:assert/strict';
import { test } from 'node:test';

import { View } from '../../src/inftda/pages/assets/view.mjs';
import { country, level, made } from './made.mjs';

const MODES = ['matrix', 'list'];

test('an address gives its view back, and one that leads nowhere gives none', () => {
  const model = country();
  for (const address of ['#/0.0.2/1.1.2/matrix', '#/1.0.1/0.0.0/list']) {
    assert.equal(View.at(model, address, MODES).address, address);
  }
  for (const address of ['#/9.9.9/0.0.1/list', '#/1.1.2/0.0.1/none', '#/1.0.0/0.0.1/list', '#/0.0.1/0.0.1/list/1.0', '#explore', '#/x', '']) {
    assert.equal(View.at(model, address, MODES), null, address);
  }
});

test('zooming in brings the next level, and zooming out leads back', () => {
  const model = country();
  const start = new View(model, {});
  assert.deepEqual(start.levels, [1, 1]);
  const inside = start.with({ row: { level: 1, index: 1 } });
  assert.deepEqual([inside.rowLevel, inside.columnLevel], [2, 1]);
  assert.deepEqual(inside.out().row, { level: 0, index: 0 });
  assert.equal(start.isWhole && !inside.isWhole, true);
});

test('only children are passed on the way in and out', () => {
  const model = made({
    axes: { area: [level('region', ['R', 'Q']), level('province', ['P', 'O'], { children: [1, 1] }), level('town', ['a', 'b', 'c'], { children: [2, 1] })], sex: [level('sex', ['f'])] },
    flows: [],
  });
  const inside = new View(model, {}).with({ row: { level: 1, index: 0 } });
  assert.equal(inside.rowLevel, 3);
  const town = inside.with({ row: { level: 3, index: 0 } });
  assert.deepEqual(town.out().row, { level: 1, index: 0 });
});

test('what to use, and why nothing is known of sums, is said of their levels', () => {
  const model = country({
    uses: { '2,2': ['Use flows of 28 or more.'] }, unknown: ['No interval is known.'], summed: ['2,1'],
    intervals: { '2,2': [[0, 1, 370, 430]] },
  });
  assert.equal(model.adviceOf([2, 2], 0), 'Use flows of 28 or more.');
  assert.equal(model.adviceOf([1, 1], 0), 'No interval is known.');
  assert.equal(model.adviceOf([2, 1], 0), 'No interval is known. Errors add up in these sums.');
});

test('a page opens at the levels it is told, and with other rows or columns at coarse ones', () => {
  const model = country({ opens: [2, 1] });
  for (const mode of ['map', 'matrix', 'list']) assert.deepEqual(View.first(model, mode).levels, [2, 1]);
  model.arrange([1, 0]);
  assert.deepEqual(View.first(model, 'matrix').levels, [1, 1]);
});

test('a number is explained by what is known of it', () => {
  const model = country({ summed: ['2,1'], intervals: { '1,1': [[0, 0, 400, 450]], '0,0': [[0, 0, 457, 457]], '2,1': [[0, 0, 390, 420]] } });
  const view = new View(model, {});
  const [whole, region, many] = [{ level: 0, index: 0 }, { level: 1, index: 0 }, { level: 1, index: -1 }];
  assert.match(view.worth(region, region, 430), /lies between 400 and 450: .* numbers of similar size\.$/);
  assert.match(view.worth({ level: 2, index: 0 }, region, 400), /between 390 and 420: .* of similar size, of sums on most tables\.$/);
  assert.match(view.worth(region, region, 0), /Nothing was published here; the true number may be small/);
  assert.equal(view.worth(region, whole, 450), 'This page has no interval for it.');
  assert.equal(view.worth(whole, whole, 457), 'The overall total is exact.');
  assert.equal(view.worth(many, region, 3), 'A sum of several areas.');
});

const series = () => made({
  axes: { town: [level('town', ['1', '2'])], sex: [level('sex', ['f', 'm'])], edition: [level('edition', ['2023', '2024'])] },
  editions: 2, flows: [[0, 0, 0, 5], [0, 0, 1, 50], [1, 1, 1, 80]], unknown: ['None.', ''],
});

test('a series opens with its last edition, and editions are never added up', () => {
  const model = series();
  const start = new View(model, {});
  assert.deepEqual([start.edition, start.further, start.address], [1, [{ level: 1, index: 1 }], '#/0.0.1/0.0.1/matrix']);
  const first = View.at(model, '#/0.0.1/0.0.1/list/1.0', MODES);
  assert.deepEqual([first.edition, first.address], [0, '#/0.0.1/0.0.1/list/1.0']);
  assert.equal(View.at(model, '#/0.0.1/0.0.1/list/0.0', MODES), null);
  assert.deepEqual(Array.from(model.totals(0, 1, 0).value), [5, 0]);
  assert.deepEqual(Array.from(model.totals(0, 1).value), [50, 80]);
  assert.deepEqual(Array.from(model.totals(2, 1).value), [5, 130]);
  assert.deepEqual([model.adviceOf([1, 1, 1], 0), model.adviceOf([1, 1, 1], 1), model.adviceOf([1, 1, 1], null)], ['None.', '', '2023: None.']);
  model.arrange([2, 0]);
  const overTime = View.at(model, '#/0.0.1/0.0.1/matrix', MODES);
  assert.equal(overTime.edition, null);
  assert.equal(View.at(model, '#/0.0.0/0.0.1/matrix', MODES), null);
  assert.equal(overTime.with({ row: { level: 1, index: 0 } }).edition, 0);
});
