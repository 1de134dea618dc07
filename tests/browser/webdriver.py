# SPDX-License-Identifier: GPL-2.0-or-later
"""Chromium, driven as a user would."""

import base64
import json
import pathlib
import subprocess
import urllib.request

WIDTH, HEIGHT = 1200, 900
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"     # the key of an element, WebDriver standard, section 12


class Browser:
    """As much of WebDriver as is needed, over plain HTTP."""

    def __init__(self):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.url = f"http://127.0.0.1:{line.split()[-1].rstrip('.')}"
                break
        else:
            raise RuntimeError("chromedriver did not start")
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={WIDTH},{HEIGHT}"]
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = f"/session/{answer['sessionId']}"
        self.call("POST", self.session + "/window/rect", {"width": WIDTH, "height": HEIGHT})

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)["value"]

    def open(self, path, fragment=""):
        self.call("POST", self.session + "/url", {"url": pathlib.Path(path).resolve().as_uri() + fragment})

    def script(self, text, *arguments):
        return self.call("POST", self.session + "/execute/sync", {"script": text, "args": list(arguments)})

    def frame(self, label):
        return self.script("return Array.from(document.querySelectorAll('g.f'))"
                           ".find(g => g.dataset.l === arguments[0]).querySelector('rect')", label)

    def box(self, label):
        """Place of a frame on the screen; None when it is not shown."""
        return self.script("""const r = arguments[0].getBoundingClientRect(), g = arguments[0].parentNode;
            return getComputedStyle(g).display === 'none' ? null : {x: r.x, y: r.y, width: r.width, text:
            g.querySelector('text').textContent, above: g.classList.contains('above'),
            found: g.classList.contains('found')};""", self.frame(label))

    def act(self, *actions):
        self.call("POST", self.session + "/actions", {"actions": list(actions)})

    def mouse(self, x, y, press):
        moves = [{"type": "pointerMove", "duration": 0, "x": int(x), "y": int(y)}]
        if press:
            moves += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.act({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves})

    def point(self, label, press):
        """Moves the real mouse onto a frame, and clicks."""
        box = self.box(label)
        self.mouse(box["x"] + box["width"] / 2, box["y"] + 9, press)

    def type(self, text):
        """Real keys, wherever they go. (An element of a picture cannot be typed into by its id.)"""
        keys = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self.act({"type": "key", "id": "keyboard", "actions": keys})

    def click(self, selector):
        element = self.call("POST", self.session + "/element", {"using": "css selector", "value": selector})[ELEMENT]
        self.call("POST", f"{self.session}/element/{element}/click", {})

    def errors(self):
        return [e["message"] for e in self.call("POST", self.session + "/se/log", {"type": "browser"})
                if e["level"] == "SEVERE"]

    def screenshot(self):
        return base64.b64decode(self.call("GET", self.session + "/screenshot"))

    def close(self):
        try:
            self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
