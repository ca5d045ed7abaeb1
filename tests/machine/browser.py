"""browser.py - a headless Chromium, driven through its debugging pipe: for tests of the pages of
`vmp web` and `vmp report`, and for their pictures.  It needs Debian's package chromium."""
import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time


# The contrast of two colours (WCAG 2), and the colour behind an element.
COLOURS = """
  const rgba = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = c => c.slice(0, 3).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 :
    ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => {
    const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const behind = e => {
    for (; e; e = e.parentElement) {
      const color = rgba(getComputedStyle(e).backgroundColor);
      if (color.length === 3 || color[3] === 1)
        return color;
    }
    return [255, 255, 255];
  };
"""

# What a person could not read or reach in the page as it is shown: texts whose contrast to their
# background is below 4.5 (WCAG 2, AA), parts that are wider than the window without a scroll bar of
# their own, and buttons and charts that the keyboard reaches in another order, or not at all.
ILLEGIBLE = "(() => {" + COLOURS + """
  const wrong = [];
  /* the last rectangle that is painted below the middle of a chart's text */
  const below = t => {
    const box = t.getBoundingClientRect();
    const x = box.left + box.width / 2, y = box.top + box.height / 2;
    let color = behind(t.closest('svg').parentElement);
    for (const r of t.closest('svg').querySelectorAll('rect')) {
      const at = r.getBoundingClientRect(), fill = getComputedStyle(r).fill;
      if (t.compareDocumentPosition(r) & Node.DOCUMENT_POSITION_PRECEDING &&
          fill.startsWith('rgb(') && at.left <= x && x <= at.right && at.top <= y &&
          y <= at.bottom)
        color = rgba(fill);
    }
    return color;
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement, box = e.getBoundingClientRect();
    if (!texts.currentNode.data.trim() || !box.width || e.closest('script, style') ||
        (e.closest('.xterm') && !e.closest('.xterm-rows')) || e.closest('.xterm-cursor'))
      continue;
    const inChart = e.closest('svg'), style = getComputedStyle(e);
    const ratio = contrast(rgba(inChart ? style.fill : style.color),
                           inChart ? below(e) : behind(e));
    if (!(ratio >= 4.5))
      wrong.push(`contrast ${ratio.toFixed(1)}: ${texts.currentNode.data.trim().slice(0, 40)}`);
  }
  for (const e of document.querySelectorAll('body *')) {
    const box = e.getBoundingClientRect();
    if (box.width && (box.right > innerWidth + 1 || box.left < -1) &&
        !e.closest('.scroll, .xterm, svg, script'))
      wrong.push(`outside the window: ${e.tagName} ${e.id} ${e.className}`);
  }
  const keys = [...document.querySelectorAll('button, input, select, summary, a, .chart')]
    .filter(e => e.getBoundingClientRect().width && !e.disabled && !e.closest('.xterm'));
  for (const e of keys)
    if (e.tabIndex !== 0)
      wrong.push(`tabIndex ${e.tabIndex}: ${e.tagName} ${e.id} ${e.textContent.slice(0, 20)}`);
  return wrong.slice(0, 8);
})()"""


# What the keyboard's Tab should reach, in the order of the page, by a name for people.
REACHED = "(() => {" + COLOURS + """
  const name = e => e.id || e.getAttribute('aria-label') || e.name || e.textContent.slice(0, 30);
  const shown = [...document.querySelectorAll('button, input, select, summary, a, [tabindex="0"]')]
    .filter(e => e.getBoundingClientRect().width && !e.disabled && !e.closest('.xterm'));
  const at = document.activeElement, box = at.getBoundingClientRect();
  const ring = getComputedStyle(at), wide = parseFloat(ring.outlineWidth);
  const out = wide + parseFloat(ring.outlineOffset);
  const cut = edge => box.left - out < edge.left - 0.5 || box.right + out > edge.right + 0.5;
  const tallCut = edge => box.top - out < edge.top - 0.5 || box.bottom + out > edge.bottom + 0.5;
  let isCut = cut({ left: 0, right: innerWidth });
  for (let e = at.parentElement; e && e !== document.body; e = e.parentElement)
    if (getComputedStyle(e).overflowX !== 'visible')
      isCut ||= cut(e.getBoundingClientRect()) || tallCut(e.getBoundingClientRect());
  return { all: shown.map(name), at: shown.includes(at) ? name(at) : null,
    ring: ring.outlineStyle !== 'none' && wide > 0, isCut,
    contrast: contrast(rgba(ring.outlineColor), behind(at.parentElement)),
    inside: box.bottom > 0 && box.top < innerHeight, x: box.left + scrollX, y: box.top + scrollY };
})()"""


class Browser:
    """One page.  Everything that the page writes to the browser's log is in `complaints`."""

    def __init__(self, width=1280, height=1000, dark=False):
        self.folder = tempfile.mkdtemp(prefix="vmp-browser-")
        to_it, self.write_fd = os.pipe()
        self.read_fd, from_it = os.pipe()

        def place_ends():
            # Chromium reads from 3 and writes to 4.
            a, b = os.dup(to_it), os.dup(from_it)
            os.dup2(a, 3)
            os.dup2(b, 4)

        command = ["chromium", "--headless", "--no-sandbox", "--remote-debugging-pipe",
                   "--disable-gpu", "--no-first-run", "--disable-extensions",
                   "--disable-background-networking", "--disable-component-update",
                   "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
                   f"--user-data-dir={self.folder}", "about:blank"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=place_ends, close_fds=False,
                                        start_new_session=True,
                                        env={**os.environ, "HOME": self.folder})
        os.close(to_it)
        os.close(from_it)
        self.number, self.bytes, self.session = 0, b"", None
        self.complaints, self.requests = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setScrollbarsHidden", hidden=True)
        self.shape(width, height, dark)

    def shape(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme",
                             "value": "dark" if dark else "light"}])
        # The page learns its new size with the next frame, and a loaded computer may be long
        # about it.
        self.value(f"""new Promise(done => {{
            const look = () => innerWidth === {width} && innerHeight === {height} ?
                requestAnimationFrame(done) : requestAnimationFrame(look);
            look();
        }})""")

    def receive(self):
        while b"\0" not in self.bytes:
            part = os.read(self.read_fd, 1 << 16)
            if not part:
                raise EOFError("chromium has ended")
            self.bytes += part
        text, _, self.bytes = self.bytes.partition(b"\0")
        return json.loads(text)

    def note(self, event):
        method, more = event.get("method"), event.get("params", {})
        if method == "Log.entryAdded":
            self.complaints.append(more["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            details = more["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description")
                                   or details["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(more["request"]["url"])

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_fd, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") != self.number:
                self.note(answer)
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            return answer["result"]

    def open(self, url):
        self.call("Page.navigate", url=url)

    def value(self, script):
        """The value of an expression; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True, userGesture=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, script, limit_s=300):
        """Waits until an expression is true; one that fails is not.  The limit is for hangs."""
        end = time.monotonic() + limit_s
        while not self.value(f"(() => {{ try {{ return !!({script}); }} catch {{ }} }})()"):
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {script}")
            time.sleep(0.1)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def key(self, key, code, text=None, shift=False):
        key_event = {"key": key, "code": key, "windowsVirtualKeyCode": code,
                     "modifiers": 8 if shift else 0}
        if text:
            key_event["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", **key_event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **key_event)

    def walk(self, limit=200):
        """Presses Tab from where the focus is to the end of the page.  Returns the faults: what is
        reached is to be everything behind that, in its order, in sight, with a ring around it; on
        the page, the way goes down, or to the right."""
        before = self.value(REACHED)
        order = before["all"]
        want = order[order.index(before["at"]) + 1:] if before["at"] else order
        reached, faults = [], []
        for _ in range(limit):
            self.key("Tab", 9)
            now = self.value(REACHED)
            if now["at"] is None or len(reached) == len(want):
                break
            reached.append(now["at"])
            if not now["ring"]:
                faults.append(f"no ring around {now['at']}")
            elif now["isCut"]:
                faults.append(f"the ring around {now['at']} is cut off")
            elif now["contrast"] < 3:
                faults.append(f"the ring around {now['at']}: contrast {now['contrast']:.1f}")
            if not now["inside"]:
                faults.append(f"out of sight: {now['at']}")
            if before["at"] and now["y"] < before["y"] - 8 and now["x"] < before["x"] + 8:
                faults.append(f"the focus goes up and back, from {before['at']} to {now['at']}")
            before = now
        if reached != want:
            faults.append(f"Tab reaches {reached}, not {want}")
        return faults

    def picture(self, path, whole=True):
        if whole:
            self.whole()
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))

    def whole(self):
        """Makes the window as tall as the page."""
        size = self.value("[innerWidth, document.documentElement.scrollHeight]")
        self.call("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1],
                  deviceScaleFactor=1, mobile=False)
        # without these, a picture may lack what the last frame has changed
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def see(self, sight):
        """Shows the page from now on as people see it who lack the cones for red, green or blue:
        protanopia, deuteranopia or tritanopia; or none: with all of them."""
        self.call("Emulation.setEmulatedVisionDeficiency", type=sight)

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.write_fd)
        os.close(self.read_fd)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()
