describe("basket", () => {
  it.only("adds", () => {
    expect(1 + 1).toBe(2);
  });
  it("removes", () => {
    debugger;
    expect(only(2)).toBe(1);
  });
});
