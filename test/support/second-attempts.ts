import type { Reporter, TestCase } from 'vitest/node';

/** Names the tests that failed once and then passed: nobody should have to guess which ones depend on chance. */
export class SecondAttempts implements Reporter {
  #names: string[] = [];

  onTestCaseResult(test: TestCase): void {
    if (test.diagnostic()?.flaky === true)
      this.#names.push(`${test.module.relativeModuleId} > ${test.fullName}`);
  }

  onTestRunEnd(): void {
    for (const name of this.#names) process.stdout.write(`passed at the second attempt: ${name}\n`);
  }
}
