/** Style sheets are imported as text: `import look from "./pages/page.css" with { type: "text" }`. */
declare module "*.css" {
  const text: string;
  export default text;
}
