import assert from 'node:assert/strict';
import { test } from 'node:test';

import { View } from '../../src/inftda/pages/assets/view.mjs';
import { country, level, made } from './made.mjs';

const flowsOf = ({ n, row, column, value }) => Array.from({ length: n }, (_, i) => [row[i], column[i], value[i]]);

test('flows are summed up at the levels of a view and kept to its areas', () => {
  const model = country();
  const at = (address) => flowsOf(model.flows(View.at(model, address, ['list'])));
  assert.deepEqual(at('#/0.0.2/0.0.2/list'), [[0, 1, 400], [1, 1, 30], [1, 2, 20], [3, 0, 7]]);
  assert.deepEqual(at('#/0.0.1/0.0.1/list'), [[0, 0, 430], [0, 1, 20], [1, 0, 7]]);
  assert.deepEqual(at('#/1.0.2/1.0.1/list'), [[0, 0, 400], [1, 0, 30]]);
  assert.deepEqual(at('#/0.0.0/0.0.0/list'), [[0, 0, 457]]);
});

test('a published total stands in place of a sum, also where nothing is listed', () => {
  const model = country({ totals: { '1,0': [460, 15] }, intervals: { '1,0': [[0, 0, 450, 470], [1, 0, 5, 12]] } });
  const view = View.at(model, '#/0.0.1/0.0.0/list', ['list']);
  assert.deepEqual(flowsOf(model.flows(view)), [[0, 0, 460], [1, 0, 15]]);
  assert.equal(view.total({ level: 1, index: 0 }, { level: 0, index: 0 }, 450), 460);
  assert.deepEqual(Array.from(model.totals(0, 1).value), [460, 15]);
  /* Of the first, 10 are not in flows: no more than half of the interval. Of the second 8 are. */
  assert.equal(model.unlisted([1, 0], 460, [0, 0]), 0);
  assert.equal(model.unlisted([1, 0], 15, [1, 0]), 8);
  assert.match(view.worth({ level: 1, index: 1 }, { level: 0, index: 0 }, 15), /between 5 and 15 .* 8 of these are in flows too small/);
});

test('an interval contains its number, and its longer side gives the grade', () => {
  const model = country({ intervals: { '2,2': [[0, 1, 370, 430], [1, 1, 20, 44], [3, 0, 8, 40]] } });
  const graded = (areas, value) => model.grades[model.grade([2, 2], value, areas) - 1]?.name;
  assert.deepEqual([graded([0, 1], 400), graded([1, 1], 30), graded([3, 0], 7)], ['A', 'C', 'D']);
  assert.deepEqual(model.error([2, 2], 7, [3, 0]), { low: 7, high: 40, p95: 33 });
  assert.equal(model.error([2, 2], 20, [1, 2]), null);
  assert.equal(model.hasIntervals([2, 2]), true);
  assert.equal(model.hasIntervals([1, 1]), false);
});

test('a confidential page leaves nothing out as uncertain: it has the truth', () => {
  const given = { intervals: { '2,2': [[3, 0, 0, 40]] } };
  assert.equal(country(given).mayBeZero([2, 2], 7, [3, 0]), true);
  assert.equal(country({ ...given, confidential: true, flows: [[3, 0, 7, 9]] }).mayBeZero([2, 2], 7, [3, 0]), false);
});

test('any axis is laid out against any other, and the rest filters', () => {
  const model = made({
    axes: { origin: [level('town', ['1', '2'])], destination: [level('town', ['1', '2'])], mode: [level('mode', ['walk', 'car'])] },
    flows: [[0, 1, 0, 5], [0, 1, 1, 50], [1, 0, 1, 80]],
  });
  const at = (address) => {
    const { pair, rest } = View.pairAt(model, address);
    model.arrange(pair);
    return flowsOf(model.flows(View.at(model, rest, ['list'])));
  };
  assert.deepEqual(at('#/0.0.1/0.0.1/list/1.1'), [[0, 1, 50], [1, 0, 80]]);
  assert.deepEqual(at('#/2-0/0.0.1/0.0.1/list'), [[0, 0, 5], [1, 0, 50], [1, 1, 80]]);
  assert.deepEqual(at('#/2-0/0.0.1/0.0.1/list/1.0'), [[1, 1, 80]]);
  assert.equal(model.key([1, 1, 0]), '1,0,1');
  assert.equal(View.pairAt(model, '#/1-1/0.0.1/0.0.1/list'), null);
});

test('names that repeat carry the area around them, and areas are found by parts of their names', () => {
  const names = ['Orange', 'Läke', 'Orange', 'Union'];
  const { axes: [axis] } = country({
    axes: { origin: [level('state', ['A', 'B']), level('county', ['1', '2', '3', '4'], { children: [2, 2], names })], destination: null },
  });
  assert.deepEqual(names.map((_, i) => axis.label(2, i)), ['Orange, A', 'Läke', 'Orange, B', 'Union']);
  assert.deepEqual(axis.search('lake', 9), [{ level: 2, index: 1 }]);
  assert.deepEqual(axis.search('3', 9), [{ level: 2, index: 2 }]);
  assert.deepEqual(axis.search('ORANGE', 1), [{ level: 2, index: 0 }]);
});

test('areas are listed in the order of their table', () => {
  const { axes: [axis] } = made({ axes: { age: [level('age', ['0-4', '10-14', '5-9'], { rank: [0, 2, 1] })], sex: [level('sex', ['f'])] }, flows: [] });
  assert.deepEqual(axis.inOrder(1, [0, 1, 2]), [0, 2, 1]);
});
