import type { FullConfig, FullResult, Reporter, TestCase, TestResult } from "@playwright/test/reporter";

/** One line a try, the reasons at once, the tests that needed a second try, and `N passed, N failed` alone at the end. */
export default class Lines implements Reporter {
  private passed = 0;
  private failed = 0;
  private planned = 0;
  private unsteady: string[] = [];

  onBegin(_config: FullConfig, suite: { allTests(): TestCase[] }): void {
    this.planned = suite.allTests().length;
  }

  onTestEnd(test: TestCase, result: TestResult): void {
    const name = test.titlePath().slice(3).join(" › ");
    const seconds = (result.duration / 1000).toFixed(1);
    const good = result.status === "passed";
    const last = good || result.retry === test.retries;
    if (good) this.passed += 1;
    else if (last) this.failed += 1;
    if (good && result.retry > 0) this.unsteady.push(name);
    console.log(`${good ? "ok  " : last ? "FAIL" : "AGAIN"} ${name} (${seconds} s)`);
    for (const error of result.errors) console.log(error.message ?? error.value);
  }

  onError(error: { message?: string }): void {
    console.log(error.message ?? "an error without words");
  }

  onEnd(_result: FullResult): void {
    // A test that never ran (the set-up failed, the time was over) has not passed.
    this.failed += this.planned - this.passed - this.failed;
    if (this.planned === 0) this.failed = 1;
    if (this.unsteady.length > 0) console.log(`${this.unsteady.length} passed only at the second try:\n${this.unsteady.map((name) => `  ${name}`).join("\n")}`);
    console.log(`${this.passed} passed, ${this.failed} failed`);
  }

  printsToStdio(): boolean {
    return true;
  }
}
