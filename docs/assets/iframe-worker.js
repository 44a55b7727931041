/* Browsers start no worker for a page that is opened from disk, so the search has none to work in.
   There, a hidden frame does the work instead: it runs the worker's script and passes messages on. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.isReady = new Promise((resolve, reject) => {
        const script = this.inner.document.createElement("script");
        script.onload = resolve;
        script.onerror = reject;
        script.src = url;
        this.inner.document.body.append(script);
      });
    }

    postMessage(data) {
      this.isReady.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.inner.frameElement.remove();
    }
  };
}
