/* The visible part of a map: a held pointer moves it, a wheel or two fingers zoom it. */

const MOST_ZOOM = 64;
/* Less than this is a click with an unsteady hand. */
const LEAST_MOVE = 4;

export class Camera {
  constructor() {
    this.size = [1, 1];
    /* Where each pointer is that is held down. */
    this.held = new Map();
    this.reset();
  }

  reset() {
    this.zoom = 1;
    this.shift = [0, 0];
  }

  /* Zoom around a point of the picture, which stays in place; true if anything changes. */
  scale(factor, at = this.size.map((size) => size / 2)) {
    const zoom = Math.min(MOST_ZOOM, Math.max(1, this.zoom * factor));
    if (zoom === this.zoom) return false;
    this.move(at.map((place, i) => (place - this.size[i] / 2 - this.shift[i]) * (1 - zoom / this.zoom)), zoom);
    return true;
  }

  /* Move by a way, as far as there is anything to see. */
  move(by, zoom = this.zoom) {
    this.zoom = zoom;
    this.shift = this.shift.map((shift, i) => {
      const most = this.size[i] * (zoom - 1) / 2;
      return Math.max(-most, Math.min(most, shift + by[i]));
    });
  }

  press(id, at) {
    this.held.set(id, at);
    this.start = this.held.size === 1 ? at : null;
  }

  /* A pointer is somewhere else: true if the picture has changed, null if no pointer is held. */
  drag(id, at) {
    const before = this.held.get(id);
    if (!before) return null;
    if (this.start && Math.hypot(at[0] - this.start[0], at[1] - this.start[1]) <= LEAST_MOVE) return false;
    const from = [...this.held.values()];
    this.held.set(id, at);
    const to = [...this.held.values()];
    this.start = null;
    const [old, middle] = [from, to].map((all) => [0, 1].map((i) => all.reduce((sum, one) => sum + one[i], 0) / all.length));
    if (from.length === 2) {
      const [apart, now] = [from, to].map(([one, other]) => Math.hypot(one[0] - other[0], one[1] - other[1]));
      this.scale(now / Math.max(apart, 1), old);
    }
    this.move([middle[0] - old[0], middle[1] - old[1]]);
    return true;
  }

  /* A pointer is let go, or was taken away: true if it was a click. */
  release(id) {
    return this.held.delete(id) && this.start !== null && !this.held.size;
  }
}
