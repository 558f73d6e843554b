import hooks from "eslint-plugin-react-hooks";
import { defineConfig } from "eslint/config";
import typescript from "typescript-eslint";

export default defineConfig(
  { ignores: ["src/schema.d.ts", "src/generated.d.ts", "node_modules"] },
  {
    files: ["src/**/*.ts", "src/**/*.tsx"],
    extends: [typescript.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { "react-hooks": hooks },
    rules: {
      "react-hooks/rules-of-hooks": "error",
      "react-hooks/exhaustive-deps": "error",
      // Unused names take fields out of an object.
      "@typescript-eslint/no-unused-vars": ["error", { varsIgnorePattern: "^_" }],
      "no-restricted-syntax": [
        "error",
        {
          selector: "MemberExpression[property.name='length'][object.property.name='shown']",
          message: "What was read may be a part: say `count`, `rest` or `named` of the list.",
        },
        {
          selector:
            "CallExpression[callee.object.name='api'][callee.property.name='GET']" +
            "[arguments.0.value=/^.memory.(items|quarantine|commits|receipts|search|contradictions|sources|activity|news|facets)$/]",
          message: "Call `get` of load.ts: its answer says how many there are.",
        },
      ],
    },
  },
  { files: ["src/listed.ts"], rules: { "no-restricted-syntax": "off" } },
);
