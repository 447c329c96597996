job "render" {
  type = "batch"
  group "gpu" {
    task "blend" {
      driver = "exec"
      config { command = "/opt/blender/blender" }
      resources {
        memory = 4096
        device "nvidia/gpu/Tesla V100-PCIE-16GB" {}
        device "usb/key/licence" { count = 1 }
      }
    }
  }
}
