// A button on every block of code that copies what a reader would type.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.title = "Copy the code";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const text = block.querySelector("pre").innerText;
      const lines = text.split("\n");
      const typed = lines.filter((line) => /^(>>>|\.\.\.|\$)( |$)/.test(line));
      const code = typed.length
        ? typed.map((line) => line.replace(/^(>>>|\.\.\.|\$) ?/, "")).join("\n")
        : text;
      try {
        await navigator.clipboard.writeText(code.trimEnd() + "\n");
      } catch {
        const area = document.createElement("textarea"); // pages opened from a file
        area.value = code.trimEnd() + "\n";
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
      }
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    block.append(button);
  }
});
