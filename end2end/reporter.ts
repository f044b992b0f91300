import type { FullConfig, FullResult, Reporter, TestCase, TestResult } from "@playwright/test/reporter";

/** One line a test, the reasons at once, and `N passed, N failed` alone at the end. */
export default class Lines implements Reporter {
  private passed = 0;
  private failed = 0;
  private planned = 0;

  onBegin(_config: FullConfig, suite: { allTests(): TestCase[] }): void {
    this.planned = suite.allTests().length;
  }

  onTestEnd(test: TestCase, result: TestResult): void {
    const name = test.titlePath().slice(3).join(" › ");
    const seconds = (result.duration / 1000).toFixed(1);
    if (result.status === "passed") this.passed += 1;
    else this.failed += 1;
    console.log(`${result.status === "passed" ? "ok  " : "FAIL"} ${name} (${seconds} s)`);
    for (const error of result.errors) console.log(error.message ?? error.value);
  }

  onError(error: { message?: string }): void {
    console.log(error.message ?? "an error without words");
  }

  onEnd(_result: FullResult): void {
    // A test that never ran (the set-up failed, the time was over) has not passed.
    this.failed += this.planned - this.passed - this.failed;
    if (this.planned === 0) this.failed = 1;
    console.log(`${this.passed} passed, ${this.failed} failed`);
  }

  printsToStdio(): boolean {
    return true;
  }
}
