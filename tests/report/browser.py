"""A headless Chromium that tests steer: just enough of its protocol, spoken over two pipes."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time


def find_browser():
    """The browser's program, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    return None


class Browser:
    """Opens pages one after the other. Used as a context."""

    def __init__(self, program, timeout=60):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def place_pipes():
            # The browser reads from 3 and writes to 4. Numbers above are taken first, for either may lie there already.
            high_in, high_out = os.dup(to_browser), os.dup(from_browser)
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        self._process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--disable-dev-shm-usage", f"--user-data-dir={self._profile.name}", "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=place_pipes)
        os.close(to_browser)
        os.close(from_browser)
        self._timeout = timeout
        self._buffer = b""
        self._number = 0
        self._session = None
        self.events = []
        os.set_blocking(self._read, False)
        target = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._session = None
            self.call("Browser.close")
            self._process.wait(10)
        except (OSError, RuntimeError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._profile.cleanup()

    def _next(self, until):
        while b"\0" not in self._buffer:
            try:
                piece = os.read(self._read, 1 << 20)
                if not piece:
                    raise RuntimeError("the browser ended")
                self._buffer += piece
            except BlockingIOError:
                if time.monotonic() > until:
                    raise TimeoutError("the browser doesn't answer") from None
                time.sleep(0.005)
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self._write, text):]
        until = time.monotonic() + self._timeout
        while True:
            answer = self._next(until)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error'].get('message')}")
                return answer["result"]
            self.events.append(answer)

    def open(self, file, width=1280, height=900, dark=False, scale=1):
        """Opens a file; returns the milliseconds until its script was through, or None when it never was."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events.clear()
        self.call("Page.navigate", url=pathlib.Path(file).resolve().as_uri())
        until = time.monotonic() + self._timeout
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next(until))
        ready = self.evaluate("document.documentElement.dataset.ready || null")
        return None if ready is None else int(ready)

    def evaluate(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:600])
        return result["result"].get("value")

    def press(self, key, text=None):
        code = {"ArrowDown": 40, "ArrowUp": 38, "Home": 36, "End": 35, " ": 32, "/": 191, "0": 48, "d": 68, "f": 70}.get(key, 0)
        down = {"type": "keyDown", "key": key, "windowsVirtualKeyCode": code}
        if text:
            down["text"] = text
        self.call("Input.dispatchKeyEvent", **down)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def screenshot(self, file, whole=True):
        # What scrolls at its own pace has drawn itself after two frames.
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(file).write_bytes(base64.b64decode(picture["data"]))

    def picture_of(self, selector, file, margin=16):
        """The part of the page that holds everything that the selector finds, and some of what is around it."""
        left, top, right, bottom = self.evaluate(f"""(() => {{
          const boxes = [...document.querySelectorAll({json.dumps(selector)})].map((one) => one.getBoundingClientRect());
          return [Math.min(...boxes.map((box) => box.left)) + scrollX, Math.min(...boxes.map((box) => box.top)) + scrollY,
            Math.max(...boxes.map((box) => box.right)) + scrollX, Math.max(...boxes.map((box) => box.bottom)) + scrollY];
        }})()""")
        clip = {"x": left - margin, "y": top - margin, "width": right - left + 2 * margin,
                "height": bottom - top + 2 * margin, "scale": 1}
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        pathlib.Path(file).write_bytes(base64.b64decode(picture["data"]))

    def print(self, file):
        pathlib.Path(file).write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"]))

    def complaints(self):
        """What the page's script or its policy complained of, and every request that wasn't for the page itself."""
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(json.dumps(parameters["exceptionDetails"])[:600])
            elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
            elif event.get("method") == "Page.javascriptDialogOpening":
                found.append(f"a dialog: {parameters['message']}")
            elif event.get("method") == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if not url.startswith(("file:", "data:")):
                    found.append(f"a request: {url}")
        return found
