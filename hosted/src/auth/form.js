// What a script adds to the forms of /_auth: a password that can be looked at, and seconds that pass.
(() => {
  "use strict";
  document.querySelectorAll("button[data-shows]").forEach((button) => {
    const field = document.getElementById(button.dataset.shows);
    const show = (seen) => {
      field.type = seen ? "text" : "password";
      button.textContent = seen ? "Hide password" : "Show password";
    };
    button.addEventListener("click", () => show(field.type === "password"));
    // Browsers remember what is sent from a field of text.
    field.form.addEventListener("submit", () => show(false));
    button.hidden = false;
  });

  const left = document.querySelector("[data-wait]");
  if (!left) return;
  const until = Date.now() + Number(left.textContent) * 1000;
  const tick = () => {
    const seconds = Math.ceil((until - Date.now()) / 1000);
    if (seconds > 0) {
      left.textContent = seconds;
      setTimeout(tick, 1000);
    } else {
      left.parentElement.textContent = "You can try again now.";
    }
  };
  tick();
})();
