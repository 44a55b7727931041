import assert from 'node:assert/strict';
import { test } from 'node:test';

import { byTrips, classesOf } from '../../src/inftda/pages/assets/map.mjs';
import { level, made } from './made.mjs';

test('a place that two hierarchies have is there once', () => {
  const axes = { origin: [level('town', ['1', '2'])], destination: [level('town', ['1', '2', 'outside'])] };
  const places = [[[[0, 0]], [[8, 44], [9, 44]]], [[[0, 0]], [[8, 44], [9, 44], null]]];
  const model = made({ axes, flows: [], places });
  const weights = [[0, 1, 0, 5], [1, 1, 1, 7], [1, 1, 0, 4], [0, 0, 0, 99]]
    .map(([number, of, index, sum]) => ({ number, level: of, index, sum }));
  assert.deepEqual(byTrips(model, weights).map(({ index, sum }) => [index, sum]), [[0, 9], [1, 7]]);
});

test('shades are classes of about as many areas each, and of nothing there are none', () => {
  assert.deepEqual(classesOf([0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]), [10, 30, 50, 70, 90]);
  assert.deepEqual(classesOf([0, 7, 7]), [7]);
  assert.deepEqual(classesOf([0, 0]), []);
});
