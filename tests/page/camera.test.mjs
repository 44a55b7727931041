import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Camera } from '../../src/inftda/pages/assets/camera.mjs';

function camera(zoom = 1) {
  const made = new Camera();
  made.size = [400, 200];
  made.scale(zoom);
  return made;
}
/* Where a place of the whole map is on the picture. */
const seenAt = ({ zoom, shift, size }, place) => place.map((at, i) => size[i] / 2 + shift[i] + (at - size[i] / 2) * zoom);

test('what is under the pointer stays there while a wheel zooms', () => {
  const made = camera();
  assert.equal(made.scale(4, [100, 50]), true);
  assert.deepEqual(seenAt(made, [100, 50]), [100, 50]);
  assert.equal(made.scale(0.25, [300, 10]), true);
  assert.deepEqual([made.zoom, ...made.shift.map(Math.abs)], [1, 0, 0]);
  assert.equal(made.scale(0.5, [300, 10]), false, 'a wheel that cannot zoom scrolls the page');
});

test('the map follows a pointer only while it is held, and not beyond its end', () => {
  const made = camera(2);
  assert.equal(made.drag(1, [50, 50]), null);
  made.press(1, [100, 100]);
  assert.equal(made.drag(1, [130, 90]), true);
  assert.deepEqual(made.shift, [30, -10]);
  made.drag(1, [900, 90]);
  assert.deepEqual(made.shift, [200, -10]);
  assert.equal(made.release(1), false, 'this was no click');
  assert.equal(made.drag(1, [0, 0]), null);
});

test('a hand that hardly moves clicks, and a pointer that was taken away is gone', () => {
  const made = camera(2);
  made.press(1, [10, 10]);
  assert.equal(made.drag(1, [12, 11]), false);
  assert.equal(made.release(1), true);
  assert.equal(made.release(1), false);
});

test('two fingers zoom around their middle, and letting one go is no click', () => {
  const made = camera();
  made.press(1, [150, 100]);
  made.press(2, [250, 100]);
  made.drag(1, [100, 100]);
  made.drag(2, [300, 100]);
  assert.equal(made.zoom, 2);
  assert.deepEqual(seenAt(made, [200, 100]).map(Math.round), [200, 100]);
  assert.deepEqual([made.release(1), made.release(2)], [false, false]);
});
