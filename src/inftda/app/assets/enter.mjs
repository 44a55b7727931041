/* The token of the address becomes a cookie, once, and leaves the address. */

const token = location.hash.slice(1);
history.replaceState(null, '', '/');
const answer = await fetch('/enter', {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ token }),
});
if (answer.ok) {
  location.replace((await answer.json()).path);
} else {
  document.getElementById('says').textContent = 'This address was used already, or is not complete. '
    + 'Copy the whole address from the terminal, or end the app there with Ctrl-C and start it again.';
}
