// The chosen colours before the first paint, then the console.
try {
  const theme = localStorage.getItem('loupe.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch { /* storage may be refused; the system's colours then */ }
import('./{script}')
  .then((console) => console.default({ module_or_path: new URL('{wasm}', document.baseURI) }))
  .catch((error) => {
    const note = document.createElement('p');
    note.role = 'alert';
    note.className = 'boot-failed';
    note.textContent = `The console could not start: ${error}. Reload the page; an up-to-date browser with WebAssembly is needed.`;
    document.body.replaceChildren(note);
  });
