import { defineConfig } from "eslint/config";
import typescript from "typescript-eslint";

export default defineConfig(
  { ignores: ["src/schema.ts", "dist", "node_modules"] },
  {
    files: ["src/**/*.ts", "tests/**/*.ts"],
    extends: [typescript.configs.recommendedTypeChecked],
    languageOptions: {
      parserOptions: { project: "tests/tsconfig.json", tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      // Unused names take fields out of an object.
      "@typescript-eslint/no-unused-vars": ["error", { varsIgnorePattern: "^_" }],
    },
  },
  {
    // The client runs in every browser: nothing of Node is in it.
    files: ["src/**/*.ts"],
    rules: {
      "no-restricted-imports": ["error", { patterns: ["node:*"] }],
      "no-restricted-globals": ["error", "process", "Buffer", "require", "global", "window", "document"],
    },
  },
  {
    // `test` returns a promise that its runner awaits.
    files: ["tests/**/*.ts"],
    rules: { "@typescript-eslint/no-floating-promises": "off" },
  },
);
