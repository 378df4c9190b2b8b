/*
 * Search for pages that were opened from a folder. Browsers start no Worker for a file:// page, so this
 * class runs the search script in a hidden frame instead. The script recognises it by the name IFrameWorker.
 */
(() => {
  if (location.protocol !== "file:") return

  class IFrameWorker extends EventTarget {
    constructor(url) {
      super()
      this.ready = false
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inner = this.frame.contentWindow
      inner.postMessage = data => this.answer(data)
      inner.importScripts = (...urls) => urls.reduce((done, next) => done.then(() => this.load(next)), Promise.resolve())
      this.load(url).then(() => {
        this.ready = true
        this.waiting.splice(0).forEach(data => this.deliver(data))
      }, error => this.dispatchEvent(new ErrorEvent("error", { error })))
    }

    postMessage(data) {
      if (this.ready) this.deliver(data)
      else this.waiting.push(data)
    }

    terminate() {
      this.frame.remove()
    }

    deliver(data) {
      const inner = this.frame.contentWindow
      setTimeout(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })))
    }

    answer(data) {
      const event = new MessageEvent("message", { data })
      this.dispatchEvent(event)
      if (this.onmessage) this.onmessage(event)
    }

    load(url) {
      const inner = this.frame.contentDocument
      return new Promise((loaded, failed) => {
        const script = inner.createElement("script")
        Object.assign(script, { src: url, onload: loaded, onerror: failed })
        inner.head.append(script)
      })
    }
  }

  window.IFrameWorker = IFrameWorker
  window.Worker = IFrameWorker
})()
