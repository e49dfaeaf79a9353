/** Lint rules that the compiler cannot check; taste is left to reviewers. */
import { defineConfig, globalIgnores } from 'eslint/config';
import typescript from 'typescript-eslint';

export default defineConfig(
  globalIgnores(['node_modules/', '.exuvia/', 'coverage/', 'test/arrows/fixture/', '**/*.generated.ts']),
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['**/*.js', '**/*.cjs'],
    rules: { eqeqeq: 'error', 'no-unused-vars': 'error', 'no-var': 'error', 'prefer-const': 'error' },
  },
  {
    files: ['**/*.ts'],
    plugins: { '@typescript-eslint': typescript.plugin },
    languageOptions: {
      parser: typescript.parser,
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-var': 'error',
      'prefer-const': 'error',
      // A promise nobody waits for hides its failure.
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/await-thenable': 'error',
      // Inside `try`, a promise returned without `await` escapes the `catch`.
      '@typescript-eslint/return-await': ['error', 'error-handling-correctness-only'],
      '@typescript-eslint/only-throw-error': 'error',
      '@typescript-eslint/prefer-promise-reject-errors': 'error',
      // A new event or state must be thought of everywhere.
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-unsafe-assignment': 'error',
      '@typescript-eslint/no-unsafe-call': 'error',
      '@typescript-eslint/no-unsafe-member-access': 'error',
      '@typescript-eslint/no-unsafe-return': 'error',
      '@typescript-eslint/no-base-to-string': 'error',
      '@typescript-eslint/restrict-plus-operands': 'error',
      '@typescript-eslint/no-unnecessary-type-assertion': 'error',
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'separate-type-imports' }],
      '@typescript-eslint/ban-ts-comment': 'error',
      'no-restricted-syntax': [
        'error',
        {
          selector: "CallExpression[callee.object.name=/^(it|test|describe)$/][callee.property.name=/^(only|skip|todo)$/]",
          message: 'Every test runs, every time; use skipIf with a reason where a server may be absent.',
        },
      ],
    },
  },
  {
    // Standard output carries the ready line only; logs go through the logger.
    files: ['src/**/*.ts', 'schema/**/*.ts', 'projections/**/*.ts'],
    ignores: ['src/cli.ts', 'src/cli/**'],
    rules: { 'no-console': 'error' },
  },
);
