/* Unpack the numbers of a page, and start to explore them. */

import { Explorer } from './explorer.mjs';
import { Model } from './model.mjs';
import { h, unpack } from './tools.mjs';

async function start() {
  const root = document.getElementById('explorer');
  try {
    const { header, numbers } = await unpack(document.getElementById('packed').textContent);
    new Explorer(new Model(header, numbers), root);
    document.documentElement.dataset.ready = 'yes';
  } catch (problem) {
    root.replaceChildren(h('p', { class: 'note' }, 'The numbers cannot be shown: ' + problem.message));
    throw problem;
  }
}

start();
